/**
 * The files of one conversation for all of its tools: remembers what was read, makes changes one at a time, and records
 * each so that it can be undone. The tools decide what to show and what to write.
 */
import { join } from 'node:path'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import type { FileChangeKind } from '../../contract/files.ts'
import type { EditorFiles, FoundEntry, FoundFile, Missing } from '../../files/editor-files.ts'
import { FileRefusal } from '../../files/jail/file-refusal.ts'
import { Queue } from '../../lib/queue.ts'
import { createEditHistory, editsIn } from '../editor/edit-history.ts'
import type { Content, ContentSealer, EditHistory, PastEdit } from '../editor/edit-history.ts'
import { MAX_FILE_BYTES, asFile, decode, encode } from '../editor/editor-content.ts'
import { EditorError, mebibytes } from '../editor/editor-faults.ts'
import type { ChangedFile } from '../editor/file-edits.ts'
import type { DecodedText } from '../editor/text-encoding.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { ToolContext } from '../tool.ts'
import { SeenFiles } from './seen-files.ts'

export type AgentFilesDeps = {
  readonly files: EditorFiles
  /** The server's own directory for this conversation: stores past edits and what was read. */
  readonly stateDirectory: string
  readonly sealer: ContentSealer
  /** Redacts text before it is cut: a secret that is cut would not be found later. */
  readonly redact: (text: string) => Promise<string>
  /** Called after each change, with the absolute path. Must not throw. */
  readonly onFileChanged?: (path: string, how: FileChangeKind) => void
}

/** A file and its decoded text. */
export type OpenText = { readonly file: FoundFile; readonly decoded: DecodedText }

/** The target of a write: an existing file, or a missing one. */
export type EditPlace = FoundFile | Missing

/**
 * `content`: undefined removes the file. `mode`: the permissions of a file that is created. `oldPath`: where it was, if another
 * change removes it there.
 */
export type FileChange = {
  readonly place: EditPlace
  readonly content: Content
  readonly mode?: number | undefined
  readonly oldPath?: string | undefined
}

export class AgentFiles {
  readonly redact: AgentFilesDeps['redact']
  readonly #files: EditorFiles
  readonly #history: EditHistory
  readonly #seenFiles: SeenFiles
  readonly #onChanged: AgentFilesDeps['onFileChanged']
  readonly #queue = new Queue({ limit: 1 })
  /** The files that the current call has changed. */
  #changedFiles: ChangedFile[] = []

  constructor({ files, stateDirectory, sealer, redact, onFileChanged }: AgentFilesDeps) {
    this.redact = redact
    this.#onChanged = onFileChanged
    this.#files = files
    this.#history = createEditHistory({ directory: editsIn(stateDirectory), sealer })
    this.#seenFiles = new SeenFiles(join(stateDirectory, 'read-files'))
  }

  /** Runs work that changes files, after earlier such work, and says what it has changed. See `toOutcome`. */
  change(
    { workdir, signal }: Pick<ToolContext, 'workdir' | 'signal'>,
    work: () => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    return this.#queue
      .run(async () => {
        const outcome = await toOutcome(work)
        const changedFiles = this.#changedFiles
        if (changedFiles.length === 0) return outcome
        this.#changedFiles = []
        const { fileEditsOf } = await import('../editor/file-edits.ts')
        const changes = await fileEditsOf(changedFiles, { workdir, redact: this.redact, signal })
        return changes.length > 0 ? { ...outcome, changes } : outcome
      })
      .finally(() => (this.#changedFiles = []))
  }

  look(path: string, maxBytes: number = MAX_FILE_BYTES): Promise<FoundEntry> {
    refuseNul(path)
    return this.#files.look(path, maxBytes)
  }

  list(directory: string): ReturnType<EditorFiles['list']> {
    return this.#files.list(directory)
  }

  /** Throws an `EditorError` if it is not a text file. */
  async openText(path: string): Promise<OpenText> {
    const file = asFile(path, await this.look(path))
    const decodedText = decode(path, file.bytes)
    // Each step takes a while for a file of many megabytes: yield between them.
    await yieldToLoop()
    return { file, decoded: decodedText }
  }

  /** Records that the model has been shown this file, or a part of it. */
  noteRead({ path, bytes }: FoundFile): Promise<void> {
    return this.#seenFiles.note(path, bytes)
  }

  /** Throws an `EditorError` unless the model knows the current content. `shown` is the model's path. */
  async requireRead(shownPath: string, { path, bytes }: FoundFile): Promise<void> {
    const seenState = await this.#seenFiles.state(path, bytes)
    if (seenState === 'never')
      throw new EditorError(`${shownPath} has not been read in this conversation. Read it first, then change it.`)
    if (seenState === 'changed')
      throw new EditorError(`${shownPath} has changed on disk since it was read. Read it again, then change it.`)
  }

  /** Writes a text in the encoding of the old one. Throws an `EditorError` if it would be too large. */
  async writeText(shownPath: string, place: EditPlace, decodedText: DecodedText): Promise<void> {
    await this.write(place, encode(shownPath, decodedText))
  }

  /** Replaces, creates or removes a file. */
  async write(place: EditPlace, content: Content): Promise<void> {
    await this.writeAll([{ place, content }])
  }

  /**
   * Makes all of the changes, or none: if one fails, the earlier ones are undone. Each is atomic, but not all together:
   * a crash can leave the first of them. A change is recorded before it is made, so that it can be undone.
   */
  async writeAll(changes: readonly FileChange[]): Promise<void> {
    const doneChanges: (readonly [FileChange, PastEdit])[] = []
    try {
      for (const change of changes) {
        refuseTooLarge(change)
        const note = await this.#history.note(change.place.path, contentOf(change.place), change.content)
        doneChanges.push([change, note])
        await this.#put(change)
      }
    } catch (error) {
      await this.#takeBack(doneChanges, error)
      throw error
    }
  }

  /** The last change may have failed, and then has left the file unchanged. */
  async #takeBack(doneChanges: readonly (readonly [FileChange, PastEdit])[], cause: unknown): Promise<void> {
    const leftPaths: string[] = []
    for (const [{ place }, note] of doneChanges.toReversed()) {
      const now = await this.#files.look(place.path, MAX_FILE_BYTES).catch(() => undefined)
      const isChanged = (now?.kind === 'file' || now?.kind === 'missing') && note.isResult(contentOf(now))
      const before = contentOf(place)
      const mode = place.kind === 'file' ? place.mode : undefined
      const isBack = !isChanged || (await this.#put({ place: now, content: before, mode }).then(...SUCCEEDED))
      if (isBack) await note.forget()
      else leftPaths.push(place.path)
    }
    if (leftPaths.length > 0)
      throw new FileRefusal(
        `${cause instanceof Error ? cause.message : String(cause)} The changes of ${leftPaths.join(', ')} could not be taken back.`,
        { cause },
      )
  }

  /** Writes without a record: for undoing an edit. */
  put(place: EditPlace, content: Content): Promise<void> {
    return this.#put({ place, content })
  }

  async #put({ place, content, mode, oldPath }: FileChange): Promise<void> {
    if (place.kind === 'missing' && !content) return
    if (place.kind !== 'missing') await (content ? this.#files.replace(place, content) : this.#files.remove(place))
    else if (content) await this.#files.create(place, content, mode)
    const { path } = place
    const fileMode = place.kind === 'file' ? place.mode : (mode ?? 0)
    this.#changedFiles.push({ path, before: contentOf(place), after: content, oldPath, mode: fileMode })
    this.#onChanged?.(place.path, place.kind === 'missing' ? 'add' : content ? 'change' : 'unlink')
    if (content) await this.#seenFiles.note(place.path, content)
  }

  /** Returns the newest edit of that file; forgets edits that a crash prevented. */
  async lastEdit(place: EditPlace): Promise<PastEdit | undefined> {
    const now = contentOf(place)
    let last = await this.#history.last(place.path)
    while (last && !last.isResult(now) && last.isMoot(now)) {
      await last.forget()
      last = await this.#history.last(place.path)
    }
    return last
  }
}

/** Converts refusals of a call or of the file system into an outcome that the model can act on. */
export async function toOutcome(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EditorError) return failure('invalid_input', error.message)
    if (error instanceof FileRefusal) return failure(error.isForbidden ? 'denied' : 'failed', error.message)
    throw error
  }
}

export const contentOf = (place: EditPlace): Content => (place.kind === 'file' ? place.bytes : undefined)

/** Handlers for `then`: true if it succeeded. */
const SUCCEEDED = [() => true, () => false] as const

function refuseTooLarge({ place, content }: FileChange): void {
  if (!content || content.length <= MAX_FILE_BYTES) return
  throw new EditorError(
    `${place.path} would be larger than the ${mebibytes(MAX_FILE_BYTES)} that can be edited; nothing was changed.`,
  )
}

function refuseNul(path: string): void {
  if (path.includes('\0')) throw new EditorError('The path contains a NUL character.')
}
