/** Changes by clients to one conversation's workdir: one atomic change at a time, each with an event in the log. */
import type { Event, EventDraft, EventOf } from '../../contract/events/event.ts'
import type { FileChangeKind, MadeDirectory, WrittenFile } from '../../contract/files.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { Queue } from '../../lib/queue.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { JailPath } from '../../files/jail/jail-path.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { makeDirectoriesIn } from '../../files/jail/path-jail.ts'
import type { IncomingFile, ReceivedFile } from '../../files/receive-files.ts'
import { receiveFiles } from '../../files/receive-files.ts'
import { remove } from '../../files/jail/remove-file.ts'
import type { UnfinishedFiles } from '../../files/jail/unfinished-files.ts'
import type { Precondition, Publishing } from '../../files/write-file.ts'
import { checkTarget, publish, stage, touch } from '../../files/write-file.ts'
import type { IdempotencyDraft } from '../../state/idempotency.ts'
import { answerOnce } from '../../state/idempotency.ts'
import { createInFlight } from '../../idempotency/in-flight.ts'
import { eventsWithKey } from '../../idempotency/keyed-events.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'
import type { Room } from './room.ts'
import { limitOf, roomIn } from './room.ts'

/** The content being received. `maxBytes` limits all of it; more is a `Problem`. Aborting leaves nothing behind. */
export type Incoming<T> = {
  readonly content: AsyncIterable<T>
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export type Removal = { readonly recursive: boolean; readonly precondition: Precondition }

/** Runs the work with the workdir open, until it has finished or the signal is aborted. */
export type InJail = <T>(signal: AbortSignal, work: (jail: Jail) => Promise<T>) => Promise<T>

export type FileChangesDeps = {
  readonly log: EventLog
  readonly inJail: InJail
  /** Aborted when no further change may begin. */
  readonly closing: AbortSignal
  readonly unfinished: UnfinishedFiles
  readonly quota: DiskQuota | undefined
  readonly redact: (text: string) => string
  readonly onFileChanged: (path: string, how: FileChangeKind) => void
}

type FileUpdate = EventOf<'FileUpdate'>
const FILE_UPDATES = new Set(['FileUpdate'])
const isFileUpdate = (event: Event): event is FileUpdate => event.type === 'FileUpdate'

type WrittenContent = { readonly file: WrittenFile; readonly created: boolean; readonly etag: string }
type Update = Omit<Extract<EventDraft, { type: 'FileUpdate' }>, 'type' | 'source'>

/**
 * Each change throws a `Problem` if the path is outside the workdir, does not exist, or is not allowed. When it
 * resolves, the change is on disk and its event is stored. Idempotent: the same key and request within a day returns
 * the earlier response.
 */
export class FileChanges {
  readonly #deps: FileChangesDeps
  readonly #changes = new Queue({ limit: 1 })
  readonly #inFlight = createInFlight()

  constructor(deps: FileChangesDeps) {
    this.#deps = deps
  }

  /** Creates an empty file if there is no content, or only updates the time of an existing one. */
  write(path: JailPath, incoming: Incoming<Uint8Array>, publishing: Publishing): Promise<WrittenContent> {
    requireFilePath(path)
    return this.#deps.inJail(incoming.signal, (jail) => this.#writeIn(jail, path, incoming, publishing))
  }

  upload(
    path: JailPath,
    { content, maxBytes, signal }: Incoming<IncomingFile>,
    draft: IdempotencyDraft | undefined,
  ): Promise<WrittenFile[]> {
    const { inJail, quota, unfinished } = this.#deps
    return this.#keyedWork(draft, ({ earlier, once }) =>
      inJail(signal, async (jail) => {
        const count = limitOf(maxBytes, await roomIn(quota))
        const options = { count, withHash: draft !== undefined, isKept: earlier.length === 0, unfinished }
        await using upload = await receiveFiles(jail, path, content, options)
        const body = { path: path.text, files: upload.files.map((file) => [file.path, file.sha256 ?? '']) }
        const events = await once(body, {
          again: async () => earlier,
          make: (key) => this.#change(() => this.#publishAll(upload.files, key)),
        })
        return events.map(writtenFile)
      }),
    )
  }

  remove(path: JailPath, how: Removal, signal: AbortSignal): Promise<void> {
    return this.#deps.inJail(signal, (jail) =>
      this.#change(async () => {
        await remove(jail, path.names, how)
        await this.#log({ path: path.text, action: 'delete' })
        this.#deps.onFileChanged(path.text, 'unlink')
      }),
    )
  }

  makeDirectory(path: JailPath, draft: IdempotencyDraft | undefined, signal: AbortSignal): Promise<MadeDirectory> {
    return this.#keyedWork(draft, ({ earlier, once }) =>
      once(
        { path: path.text },
        {
          // oxlint-disable-next-line typescript/no-non-null-assertion -- there is one, or it would not be `again`
          again: async () => madeDirectory(earlier[0]!),
          make: (key) =>
            this.#deps.inJail(signal, (jail) => this.#change(() => this.#makeDirectoryIn(jail, path, key))),
        },
      ),
    )
  }

  /** Resolves when no change is in progress. */
  async settled(): Promise<void> {
    await this.#changes.run(async () => {})
  }

  // One at a time: a checked file is unchanged when it is replaced, and the log has the order of the changes.
  #change<T>(work: () => Promise<T>): Promise<T> {
    return this.#changes.run(async () => {
      this.#deps.closing.throwIfAborted()
      return await work()
    })
  }

  async #writeIn(
    jail: Jail,
    path: JailPath,
    incoming: Incoming<Uint8Array>,
    publishing: Publishing,
  ): Promise<WrittenContent> {
    const { quota, unfinished } = this.#deps
    // Check before reading the body: a client that waits for `100 Continue` would send it without effect.
    await checkTarget(jail, path.names, publishing)
    const content = await begin(limitContent(incoming, await roomIn(quota)))
    const touchedContent = content.isEmpty && !publishing.isNew && (await this.#touch(jail, path, publishing))
    if (touchedContent) return touchedContent
    const directory = path.names.slice(0, -1)
    await using stagedFile = await stage(jail, directory, { content: content.all, withHash: false, unfinished })
    return await this.#change(async () => {
      const publication = await publish(jail, stagedFile, path.names, publishing)
      quota?.add(stagedFile.size)
      const file = await this.#logWritten(path, stagedFile.size)
      this.#deps.onFileChanged(path.text, publication.created ? 'add' : 'change')
      return { ...publication, file }
    })
  }

  /** Returns undefined if the file does not exist. */
  #touch(jail: Jail, path: JailPath, publishing: Publishing): Promise<WrittenContent | undefined> {
    return this.#change(async () => {
      const file = await touch(jail, path.names, publishing)
      return file && { file: await this.#logWritten(path, file.size), created: false, etag: file.etag }
    })
  }

  async #publishAll(files: readonly ReceivedFile[], key: EventKey): Promise<FileUpdate[]> {
    const doneUpdates: Update[] = []
    const kinds: [string, FileChangeKind][] = []
    try {
      for (const file of files) {
        const isNew = await file.publish()
        kinds.push([file.path, isNew ? 'add' : 'change'])
        this.#deps.quota?.add(file.size)
        doneUpdates.push({ path: file.path, action: 'upload', size: file.size })
      }
    } catch (error) {
      // Log the files that were published, but without the key: this is not the requested result.
      if (doneUpdates.length > 0) await this.#log(...doneUpdates)
      this.#tellOf(kinds)
      throw error
    }
    const events = await this.#log(...doneUpdates.map((update) => ({ ...update, ...key })))
    this.#tellOf(kinds)
    return events
  }

  #tellOf(changes: readonly [string, FileChangeKind][]): void {
    for (const [path, how] of changes) this.#deps.onFileChanged(path, how)
  }

  async #makeDirectoryIn(jail: Jail, path: JailPath, key: EventKey): Promise<MadeDirectory> {
    await roomIn(this.#deps.quota)
    const { place, made } = await makeDirectoriesIn(jail, path.names)
    await place.handle.close()
    if (!made) return { path: this.#deps.redact(path.text) }
    const [event] = await this.#log({ path: path.text, action: 'mkdir', ...key })
    // oxlint-disable-next-line typescript/no-non-null-assertion -- as many events as updates
    return madeDirectory(event!)
  }

  async #keyedWork<T>(draft: IdempotencyDraft | undefined, work: (request: KeyedRequest) => Promise<T>): Promise<T> {
    if (!draft) return await work({ earlier: [], once: (_, { make }) => make({}) })
    const { log, redact } = this.#deps
    refuseSecretsIn({ 'Idempotency-Key': draft.key }, redact)
    return await this.#inFlight(draft.key, async () => {
      // One snapshot for the whole request: what was found is still known when the whole body has arrived.
      const now = Date.now()
      const earlier = await Array.fromAsync(eventsWithKey(log, draft.key, isFileUpdate, { types: FILE_UPDATES }, now))
      return await work({ earlier, once: onceFor(draft, earlier, now) })
    })
  }

  async #logWritten(path: JailPath, size: number): Promise<WrittenFile> {
    const [event] = await this.#log({ path: path.text, action: 'write', size })
    // oxlint-disable-next-line typescript/no-non-null-assertion -- one update, one event
    return writtenFile(event!)
  }

  async #log(...updates: Update[]): Promise<FileUpdate[]> {
    const { log, redact } = this.#deps
    try {
      const storedEvents = await log.append(
        updates.map((update) => ({ ...update, path: redact(update.path), type: 'FileUpdate', source: 'user' })),
        { isForClient: true },
      )
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as they were drafted
      return storedEvents.map(({ event }) => event as FileUpdate)
    } catch (error) {
      throw notLogged(error)
    }
  }
}

const writtenFile = ({ path, size = 0, id, seq }: FileUpdate): WrittenFile => ({ path, size, event_id: id, seq })

const madeDirectory = ({ path, id, seq }: FileUpdate): MadeDirectory => ({ path, event_id: id, seq })

/** The parts of an idempotency key that the events of a request store. */
type EventKey = Pick<Update, 'idempotency_key' | 'body_hash'>

type KeyedRequest = {
  /** The earlier changes with the same key; empty for the first request. */
  readonly earlier: readonly FileUpdate[]
  /** Calls `answerOnce` when the body is known. */
  readonly once: <T>(
    body: object,
    steps: { readonly again: () => Promise<T>; readonly make: (key: EventKey) => Promise<T> },
  ) => Promise<T>
}

function onceFor(draft: IdempotencyDraft, earlier: readonly FileUpdate[], now: number): KeyedRequest['once'] {
  const { key } = draft
  const rememberedKeys = earlier.map(({ body_hash: bodyHash = '', timestamp: at }) => ({ key, bodyHash, at }))
  return (body, { again, make }) => {
    const idempotency = draft.with(body)
    const keptFields = { idempotency_key: key, body_hash: idempotency.bodyHash }
    return answerOnce(idempotency, { remembered: rememberedKeys, again, make: () => make(keptFields) }, now)
  }
}

function requireFilePath({ names, endsInSlash }: JailPath): void {
  if (names.length === 0 || endsInSlash)
    throw new Problem('invalid_request', 'Give the path of a file, without a slash at its end.')
}

async function* limitContent({ content, maxBytes }: Incoming<Uint8Array>, room: Room): AsyncGenerator<Uint8Array> {
  const count = limitOf(maxBytes, room)
  for await (const piece of content) {
    count(piece.length)
    if (piece.length > 0) yield piece
  }
}

type BegunContent = { readonly isEmpty: boolean; readonly all: AsyncIterable<Uint8Array> }

/** Waits for the first piece of the body. */
async function begin(content: AsyncGenerator<Uint8Array>): Promise<BegunContent> {
  const first = await content.next()
  if (first.done) return { isEmpty: true, all: content }
  const all = async function* () {
    yield first.value
    yield* content
  }
  return { isEmpty: false, all: all() }
}

/** The file was changed as requested, but the change is not in the log. */
function notLogged(cause: unknown): unknown {
  if (!(cause instanceof Problem)) return cause
  const message = `The change was made, but could not be logged. ${cause.message}`
  return new Problem(cause.code, message, { details: { ...cause.details, changed: true }, cause })
}
