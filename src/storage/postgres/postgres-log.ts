/** One conversation's log in the database, for its writer: decides what is appended in which order. */
import type { EventDraft } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type {
  AppendOptions,
  AppendOutcome,
  EventFilter,
  ListedState,
  LogPage,
  ReadOptions,
  StoredEvent,
  StoredLog,
} from '../../events/event-store.ts'
import { createGroupCommit } from '../shared/group-commit.ts'
import type { LineWithoutSeq } from '../shared/stored-event.ts'
import { serialiseDraft, storedFromDraft } from '../shared/stored-event.ts'
import type { AppendLanes, AppendResult, EventRow } from './append-lanes.ts'
import type { PostgresDatabase } from './database.ts'
import type { LogExtent } from './read-events.ts'
import { countEvents, findEvent, readPage } from './read-events.ts'
import { listedText } from './shared-rows.ts'

type Append = {
  readonly drafts: readonly DraftRow[]
  readonly options: AppendOptions
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (error: unknown) => void
}

type DraftRow = { readonly line: LineWithoutSeq; readonly source: string; readonly at: number }

export type PostgresLogParts = {
  readonly database: PostgresDatabase
  readonly lanes: AppendLanes
  readonly conversationId: string
  /** The row of the conversation: its epoch, its head, and the time of its last event in milliseconds. */
  readonly epoch: number
  readonly head: number
  readonly lastAt: number
  readonly now: () => number
  /** True if other instances list the conversation. */
  readonly isShared: boolean
  readonly onClosed: () => void
}

export class PostgresLog implements StoredLog {
  readonly conversationId: string
  readonly epoch: number
  readonly #parts: PostgresLogParts
  /** The appends that wait behind a statement in progress. */
  readonly #queued = new Set<Append>()
  /** Why appends for clients are refused, while an outage is too long. */
  #outage: unknown
  readonly #commits = createGroupCommit<Append>((group) => this.#commit(group))
  /** Higher than the lease `epoch` after a connection broke. */
  #rowEpoch: number
  #head: number
  #lastAt: number
  /** The reason why the log can no longer be used. */
  #over: Problem | undefined
  /** The reason why nothing is written any more. */
  #failure: Problem | undefined
  #isFenced = false
  readonly #losing = Promise.withResolvers<void>()
  /** The state after the last stored event. */
  #listed: ListedState | undefined
  /** What is stored of it, as far as this log knows. */
  #listing: string | undefined

  constructor(parts: PostgresLogParts) {
    this.#parts = parts
    this.conversationId = parts.conversationId
    this.epoch = this.#rowEpoch = parts.epoch
    this.#head = parts.head
    this.#lastAt = parts.lastAt
  }

  get head(): number {
    return this.#head
  }

  get whenLost(): Promise<void> {
    return this.#losing.promise
  }

  /** Call it when the database has fewer events than it had acknowledged. `foundHead`: undefined if it has no log. */
  lose(foundHead: number | undefined): void {
    if (this.#over || this.#failure) return
    this.#failure = differs(this.#head, foundHead)
    this.#losing.resolve()
  }

  listWith(listedState: ListedState): void {
    if (this.#parts.isShared) this.#listed = listedState
  }

  append(drafts: readonly EventDraft[], options: AppendOptions = {}): Promise<AppendOutcome> {
    if (this.#over) return Promise.reject(this.#over)
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a `Problem`
    if (this.#outage !== undefined && options.isForClient) return Promise.reject(this.#outage)
    return new Promise((resolve, reject) => {
      // Serialise now: the draft may change, and one that JSON cannot express must fail its own append only.
      const rows = this.#serialise(drafts)
      const chars = rows.reduce((sum, { line }) => sum + line.json.length, 0)
      const append = { drafts: rows, options, resolve, reject }
      this.#queued.add(append)
      this.#commits.add(append, chars)
    })
  }

  async read(options: ReadOptions): Promise<LogPage> {
    const page = await readPage(this.#extent(), options)
    if (this.#over) throw this.#over
    return page
  }

  async find(eventId: string): Promise<StoredEvent | undefined> {
    return await findEvent(this.#extent(), eventId)
  }

  async count(filter: EventFilter = {}): Promise<number> {
    const isAll = Object.values(filter).every((value) => value === undefined)
    return isAll ? this.#extent().head : await countEvents(this.#extent(), filter)
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
    this.#parts.onClosed()
  }

  /** Ends the log under its writer: a statement in progress finishes, waiting appends are refused. */
  async retire(why: 'fenced' | 'deleted'): Promise<void> {
    if (why === 'deleted') this.#over = this.#failure = deletedProblem()
    this.#isFenced = true
    await this.#commits.settled()
  }

  /** The clock may jump back; the log's order by time, which look-ups rely on, must not. */
  #serialise(drafts: readonly EventDraft[]): DraftRow[] {
    const at = Math.max(this.#lastAt, this.#parts.now())
    const { conversationId } = this
    const rows = drafts.map((draft) => ({
      line: serialiseDraft(draft, { ms: at, conversationId }),
      source: draft.source,
      at,
    }))
    this.#lastAt = at
    return rows
  }

  #extent(): LogExtent {
    if (this.#over) throw this.#over
    return { database: this.#parts.database, id: this.conversationId, head: this.#head }
  }

  async #commit(all: readonly Append[]): Promise<void> {
    // The others were refused.
    const group = all.filter((append) => this.#queued.delete(append))
    const decidedAppends = this.#decide(group)
    const { outcomes, events } = decidedAppends
    try {
      if (this.#failure) throw this.#failure
      if (events.length > 0 && !(await this.#store(decidedAppends, group))) {
        for (const { resolve } of group) resolve({ kind: 'fenced' })
        return
      }
    } catch (error) {
      // This also rejects those refused for what others appended before them: that is not there now.
      for (const { reject } of group) reject(error)
      return
    }
    // oxlint-disable-next-line typescript/no-non-null-assertion -- one outcome for each append of the group
    for (const [i, { resolve }] of group.entries()) resolve(outcomes[i]!)
  }

  /** Returns the outcome of each append, assuming that the statement succeeds. */
  #decide(group: readonly Append[]): DecidedAppends {
    const events: EventRow[] = []
    const outcomes = group.map(({ drafts, options }): AppendOutcome => {
      const head = this.#head + events.length
      const { epoch = this.epoch, expectedHead = head } = options
      if (epoch !== this.epoch || this.#isFenced) return { kind: 'fenced' }
      if (expectedHead !== head) return { kind: 'head_moved', head }
      const storedEvents = drafts.map(({ line }, i) => storedFromDraft(head + 1 + i, line))
      for (const [i, { seq, type, json }] of storedEvents.entries()) {
        // oxlint-disable-next-line typescript/no-non-null-assertion -- one draft for each event
        const { source, at } = drafts[i]!
        events.push({ seq, at, type, source, json })
      }
      return { kind: 'appended', events: storedEvents }
    })
    return { outcomes, events }
  }

  /** Resolves to false if another owner has the conversation. Rejects with a `Problem`. */
  async #store({ events, outcomes }: DecidedAppends, group: readonly Append[]): Promise<boolean> {
    const { lanes, conversationId: id, isShared } = this.#parts
    const { listed, text } = this.#listedAfter(outcomes)
    const listing = text === this.#listing ? null : text
    const isPatient = !group.every(({ options }) => options.isForClient)
    const entry = {
      id,
      epoch: this.#rowEpoch,
      head: this.#head,
      events,
      listing: isShared ? listing : undefined,
      isPatient,
      onLimit: this.#refuseQueued,
    }
    const result = await lanes.append(entry).catch(this.#noteFailure)
    this.#outage = undefined
    if (result.kind === 'stored') {
      this.#rowEpoch = result.epoch
      this.#head += events.length
      this.#listed = listed
      this.#listing = text
      return true
    }
    if (result.kind === 'differs') throw (this.#failure = differs(this.#head, result.head))
    this.#isFenced = true
    return false
  }

  #listedAfter(outcomes: readonly AppendOutcome[]): { listed: ListedState | undefined; text: string } {
    if (!this.#listed) return { listed: undefined, text: '' }
    try {
      const listedState = this.#listed.after(outcomes.flatMap((one) => (one.kind === 'appended' ? one.events : [])))
      return { listed: listedState, text: listedText(listedState.row) }
    } catch {
      // The subscribers of the log report what they cannot read. Other instances read the log itself.
      return { listed: undefined, text: '' }
    }
  }

  /** Nothing of what has not been sent is stored. */
  readonly #refuseQueued = (problem: unknown): void => {
    this.#outage = problem
    for (const append of this.#queued) {
      if (!append.options.isForClient) continue
      this.#queued.delete(append)
      append.reject(problem)
    }
  }

  readonly #noteFailure = (error: unknown): AppendResult => {
    this.#outage = undefined
    if (error instanceof Problem && error.code === 'storage_failed') this.#failure = error
    throw error
  }
}

type DecidedAppends = { readonly outcomes: readonly AppendOutcome[]; readonly events: readonly EventRow[] }

const differs = (expectedHead: number, foundHead: number | undefined): Problem =>
  new Problem(
    'storage_failed',
    `The database has ${foundHead ?? 'no'} events of this conversation where ${expectedHead} were stored: it has lost some, or was changed. The conversation must be reopened.`,
  )

const closedProblem = (): Problem => new Problem('unavailable', 'This conversation was closed. Try again in a moment.')

const deletedProblem = (): Problem => new Problem('conversation_deleted', 'This conversation was deleted.')
