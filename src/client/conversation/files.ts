/** The files of a conversation's workdir. Contents are streams in both directions. */
import type { QueryFor, ReplyOf } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { requireContent } from '../request/sendable.ts'
import { pathOf, queryOf } from '../request/url.ts'
import { ConversationPart } from './part.ts'

/** What a file can be written from. A stream is sent as it is read; browsers other than Chromium need a `Blob`. */
export type FileContent = BlobPart | ReadableStream<Uint8Array>
type BlobPart = string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer>

export type NewFile = { readonly name: string; readonly content: BlobPart }

/** Conditions of requests for files: entity tags, ranges and times, as in HTTP. */
export type FileHeaders = Partial<
  Record<'range' | 'if-range' | 'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since', string>
>

export type FileOptions = Omit<CallOptions, 'headers'> & { readonly headers?: FileHeaders }

export class FilesClient extends ConversationPart {
  /** Lists a directory; with `recursive` also its subdirectories. */
  list(query: Omit<QueryFor<'listFiles'>, 'format'> = {}, options?: CallOptions) {
    const params = { id: this.id }
    return listOf((page_id = query.page_id) =>
      this.api.call('listFiles', { params, query: { ...query, page_id } }, options),
    )
  }

  /**
   * Downloads a file. The response has its content as `body`, `text()`, `bytes()` and `blob()`. `at`: the file as it was after
   * the event with this seq, with `file_checkpointing`.
   */
  get(path: string, { at, ...options }: FileOptions & { readonly at?: number | undefined } = {}): Promise<Response> {
    return this.api.send('getFile', { params: { id: this.id, path }, query: { at } }, options, asResponse)
  }

  /**
   * Returns a URL that downloads a file once, within 30 seconds, without a key: for a link of a page, which keeps nothing of
   * the file in memory. `format`: a directory as `tar.gz`.
   */
  async link(
    path: string,
    query: Pick<QueryFor<'getFile'>, 'at' | 'format'> = {},
    options?: CallOptions,
  ): Promise<string> {
    const route = pathOf('/conversations/{id}/files/{path}', { id: this.id, path })
    const body = { conversation_id: this.id, file: path }
    const { ticket } = await this.api.call('createStreamTicket', { body }, options)
    return this.api.transport.urlOf(route + queryOf({ ...query, ticket }))
  }

  /** Downloads a directory as `tar.gz`. Default: the whole workdir. */
  archive(path = '', options: CallOptions = {}): Promise<Response> {
    return this.api.send(
      'listFiles',
      { params: { id: this.id }, query: { path, format: 'tar.gz' } },
      options,
      asResponse,
    )
  }

  /** Returns a response without content, whose headers have the size, the type and the entity tag of the file. */
  head(path: string, options: FileOptions = {}): Promise<Response> {
    return this.api.send('headFile', { params: { id: this.id, path } }, options, asResponse)
  }

  /** Writes a file, and creates missing directories. */
  async put(path: string, content: FileContent, options: FileOptions = {}): Promise<ReplyOf<'putFile'>> {
    requireContent(content, { canStream: true })
    const headers = { 'content-type': 'application/octet-stream', ...options.headers }
    return await this.api.callRaw('putFile', { params: { id: this.id, path }, content }, { ...options, headers })
  }

  /** Uploads all files or none. `path` is their directory. */
  async upload(files: readonly NewFile[], query?: QueryFor<'uploadFiles'>, options?: CallOptions) {
    const form = new FormData()
    for (const { name, content } of files) {
      requireContent(content)
      form.append('file', content instanceof Blob ? content : new Blob([content]), name)
    }
    return await this.api.callRaw('uploadFiles', { params: { id: this.id }, query, content: form }, options)
  }

  delete(path: string, query?: QueryFor<'deleteFile'>, options: FileOptions = {}) {
    return this.api.call('deleteFile', { params: { id: this.id, path }, query }, options)
  }

  /** Returns the type, the size, the permissions and the entity tag of a file, a directory or a link. */
  info(path: string, options?: CallOptions) {
    return this.api.call('getFileInfo', { params: { id: this.id, path } }, options)
  }

  /** Finds files by name (`q`), and lines by `content`. */
  search(query: QueryFor<'searchFiles'>, options?: CallOptions) {
    return this.api.call('searchFiles', { params: { id: this.id }, query }, options)
  }

  count(query?: QueryFor<'countFiles'>, options?: CallOptions) {
    return this.api.call('countFiles', { params: { id: this.id }, query }, options)
  }

  /** Creates a directory and its missing parents. */
  makeDirectory(path: string, options?: CallOptions) {
    return this.api.call('makeDirectory', { params: { id: this.id, path } }, options)
  }

  /** Lists the files that have changed, with patches; only with `file_checkpointing`. Default: since the last run began. */
  diff(query: QueryFor<'getDiff'> = {}, options?: CallOptions) {
    const params = { id: this.id }
    return listOf((page_id = query.page_id) =>
      this.api.call('getDiff', { params, query: { ...query, page_id } }, options),
    )
  }

  deleteSnapshots(options?: CallOptions) {
    return this.api.call('deleteSnapshots', { params: { id: this.id } }, options)
  }
}

const asResponse = (response: Response): Response => response
