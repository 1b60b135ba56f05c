/** One conversation's log in one JSONL file: decides what is durable. `log-scan.ts` finds events in the file. */
import type { EventDraft } from '../../../contract/events/event.ts'
import { Problem } from '../../../contract/problem.ts'
import { isOutOfRoom } from '../../../lib/error-code.ts'
import { textOfWrite } from './event-line.ts'
import { serialiseDraft, storedFromDraft } from '../../shared/stored-event.ts'
import type { LineWithoutSeq } from '../../shared/stored-event.ts'
import type {
  AppendOptions,
  AppendOutcome,
  EventFilter,
  LogPage,
  ReadOptions,
  StoredEvent,
  StoredLog,
} from '../../../events/event-store.ts'
import { createGroupCommit } from '../../shared/group-commit.ts'
import type { LogFile } from './log-file.ts'
import { countEvents, findEvent, readPage } from './log-scan.ts'
import type { Snapshot } from './log-scan.ts'
import type { SeqIndex } from './seq-index.ts'
import type { Tail } from './tail-repair.ts'

type Append = {
  readonly lines: readonly LineWithoutSeq[]
  readonly options: AppendOptions
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (problem: Problem) => void
}

export type JsonlLogParts = {
  readonly conversationId: string
  readonly epoch: number
  readonly file: LogFile
  readonly index: SeqIndex
  readonly tail: Tail
  /** Resolves when the directory entry of a new log is durable. */
  readonly named?: Promise<unknown>
  readonly now: () => number
  readonly onClosed: () => void
}

export class JsonlLog implements StoredLog {
  readonly conversationId: string
  readonly epoch: number
  readonly #file: LogFile
  readonly #index: SeqIndex
  readonly #now: () => number
  readonly #onClosed: () => void
  readonly #commits = createGroupCommit<Append>((group) => this.#commit(group))
  #head: number
  /** The durable offset: nothing is read beyond it, and the next write begins there. */
  #end: number
  #lastMs: number
  /** Undefined once it is durable. */
  #named: Promise<unknown> | undefined
  /** The last `opening` for which the file was verified to be unchanged. */
  #checkedOpening: number | undefined
  /** The reason why the log can no longer be used. */
  #over: Problem | undefined
  /** The reason why nothing is written any more. Set once. */
  #failure: Problem | undefined
  #isFenced = false

  constructor({ conversationId, epoch, file, index, tail, named, now, onClosed }: JsonlLogParts) {
    this.conversationId = conversationId
    this.epoch = epoch
    this.#file = file
    this.#checkedOpening = file.opening
    this.#index = index
    this.#named = named
    this.#now = now
    this.#onClosed = onClosed
    this.#head = tail.last?.seq ?? 0
    this.#end = tail.end
    this.#lastMs = tail.last ? Date.parse(tail.last.timestamp) || 0 : 0
  }

  get head(): number {
    return this.#head
  }

  // This is not async: an idle log starts writing within this very call.
  append(drafts: readonly EventDraft[], options: AppendOptions = {}): Promise<AppendOutcome> {
    if (this.#over) return Promise.reject(this.#over)
    return new Promise((resolve, reject) => {
      // Serialise now, not when the write begins: the draft may change until then, and a draft that JSON cannot express
      // must fail only its own append, not the others of the group.
      const { lines, bytes } = this.#serialise(drafts)
      this.#commits.add({ lines, options, resolve, reject }, bytes)
    })
  }

  async read(options: ReadOptions): Promise<LogPage> {
    return await readPage(this.#snapshot(), options)
  }

  async find(eventId: string): Promise<StoredEvent | undefined> {
    return await findEvent(this.#snapshot(), eventId)
  }

  async count(filter: EventFilter = {}): Promise<number> {
    const isAll = Object.values(filter).every((value) => value === undefined)
    return isAll ? this.#snapshot().head : await countEvents(this.#snapshot(), filter)
  }

  /** Resolves to true if it can be read; to false, after its last write, if it was closed. */
  async isReadable(): Promise<boolean> {
    if (!this.#over && !this.#isFenced) return true
    await this.#commits.settled()
    return false
  }

  async close(why?: 'deleted'): Promise<void> {
    this.#over ??= why === 'deleted' ? deletedProblem() : closedProblem()
    await this.#commits.settled()
    await this.#file.close(this.#over)
    this.#onClosed()
  }

  /** Ends the log under its writer: a write in progress finishes, waiting appends are refused. */
  async retire(why: 'fenced' | 'deleted'): Promise<void> {
    if (why === 'deleted') this.#over = this.#failure = deletedProblem()
    this.#isFenced = true
    await this.#commits.settled()
    await this.#file.close(this.#over ?? closedProblem())
  }

  /** The clock may jump back; the log's order by time, which lookups rely on, must not. */
  #serialise(drafts: readonly EventDraft[]): { lines: LineWithoutSeq[]; bytes: number } {
    const at = { ms: Math.max(this.#lastMs, this.#now()), conversationId: this.conversationId }
    const lines: LineWithoutSeq[] = []
    let bytes = 0
    for (const draft of drafts) {
      const line = serialiseDraft(draft, at)
      lines.push(line)
      bytes += line.json.length
    }
    this.#lastMs = at.ms
    return { lines, bytes }
  }

  #snapshot(): Snapshot {
    if (this.#over) throw this.#over
    return { source: this.#file, index: this.#index, head: this.#head, end: this.#end }
  }

  async #commit(group: readonly Append[]): Promise<void> {
    const { outcomes, events } = this.#decide(group)
    try {
      if (this.#failure) throw this.#failure
      if (events.length > 0) await this.#store(events)
    } catch (error) {
      // This also rejects those refused for what others appended before them: that isn't there now.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only a `Problem` is thrown here
      for (const { reject } of group) reject(error as Problem)
      return
    }
    // oxlint-disable-next-line typescript/no-non-null-assertion -- one outcome for each append of the group
    for (const [i, { resolve }] of group.entries()) resolve(outcomes[i]!)
  }

  /** Returns the outcome of each append, assuming that the write succeeds. */
  #decide(group: readonly Append[]): { outcomes: AppendOutcome[]; events: StoredEvent[] } {
    const events: StoredEvent[] = []
    const outcomes = group.map(({ lines, options }): AppendOutcome => {
      const head = this.#head + events.length
      const { epoch = this.epoch, expectedHead = head } = options
      if (epoch !== this.epoch || this.#isFenced) return { kind: 'fenced' }
      if (expectedHead !== head) return { kind: 'head_moved', head }
      const own = lines.map((line, i) => storedFromDraft(head + 1 + i, line))
      for (const event of own) events.push(event)
      return { kind: 'appended', events: own }
    })
    return { outcomes, events }
  }

  /** Rejects with a `Problem`. The head moves only when the events are durable. */
  async #store(events: readonly StoredEvent[]): Promise<void> {
    // One write is valid as a whole or not at all, see tail-repair: so no append of the group is ever split.
    const bytes = Buffer.from(textOfWrite(events.map(({ json }) => json)))
    await this.#requireUnchanged()
    await this.#write(bytes)
    await this.#named?.catch((cause) => this.#failForGood(cause))
    this.#named = undefined
    this.#index.learn(this.#head + 1, this.#end)
    this.#head += events.length
    this.#end += bytes.length
  }

  /**
   * The file was closed while idle, and is reopened by name. If it was changed meanwhile, it is not written. Afterwards the
   * caller writes without waiting for anything else: only a timer or a later step closes the file again.
   */
  async #requireUnchanged(): Promise<void> {
    if (this.#file.opening !== undefined && this.#file.opening === this.#checkedOpening) return
    const size = await this.#file.size().catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') this.#failForGood(cause)
      throw notOpened(cause)
    })
    if (size !== this.#end)
      this.#failForGood(new Error(`the log has ${size} bytes where it was left with ${this.#end}`))
    this.#checkedOpening = this.#file.opening
  }

  /**
   * A write that failed to reach the disk is never repeated: the kernel may have dropped its pages and marked them
   * clean. The file is open: `#requireUnchanged` has seen to it, and nothing closes it before the write begins.
   */
  async #write(bytes: Buffer): Promise<void> {
    try {
      await this.#file.write(bytes, this.#end)
    } catch (error) {
      // Truncate first: otherwise a later, shorter write would leave the end of this one behind it, as lines of the
      // log; and bytes that are not certainly durable must not be read as events when the log is reopened.
      await this.#file.truncate(this.#end).catch((cause) => this.#failForGood(cause))
      if (!isOutOfRoom(error)) this.#failForGood(error)
      throw new Problem('storage_full', 'There is no room to store this. Free some disk space and try again.', {
        cause: error,
      })
    }
  }

  #failForGood(cause: unknown): never {
    this.#failure ??= new Problem(
      'storage_failed',
      'The event log could not be written, and it is uncertain which events were stored last. The conversation must be reopened.',
      { cause },
    )
    throw this.#failure
  }
}

/** Nothing was written, so the log is still usable. */
function notOpened(cause: NodeJS.ErrnoException): Problem {
  const message = `The event log could not be opened (${cause.code}), and nothing was stored. Try again in a moment.`
  return new Problem('unavailable', message, { cause })
}

function closedProblem(): Problem {
  return new Problem('unavailable', 'This conversation was closed. Try again in a moment.')
}

function deletedProblem(): Problem {
  return new Problem('conversation_deleted', 'This conversation was deleted.')
}
