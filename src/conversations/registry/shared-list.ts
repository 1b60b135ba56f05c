/**
 * Keeps the list of conversations up to date with what other instances of the same storage create, change and delete. Takes
 * over none of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { readSnapshot } from '../../state/snapshot.ts'
import type { State } from '../../state/state.ts'
import type { ListedConversation, SharedConversations } from '../../storage/instances.ts'
import type { Storage, Summary } from '../../storage/storage.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { readSharedState } from './read-state.ts'
import type { Summaries } from './summaries.ts'
import { sharedSummary } from './summary-rows.ts'

export type SharedListDeps = {
  readonly shared: SharedConversations
  readonly storage: Storage
  readonly summaries: Pick<Summaries, 'get' | 'set' | 'delete'>
  readonly logger: Logger
}

export type FollowChanges = {
  /** Called with each conversation that another instance has deleted. */
  readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId' | 'profile'>) => void
  /** Called before conversations are listed that another instance has created. */
  readonly onAdded: () => Promise<void>
  readonly signal: AbortSignal
}

/** The interval for what nobody asks for: metrics, deadlines, and deletions that readers of the firehose see. */
const INTERVAL_MS = 1000

/** Conversations that are read from their logs at the same time. */
const CONCURRENCY = 16

/** States that are kept, so that only what was appended since must be read: those that were asked for last. */
const MAX_STATES = 256

export class SharedList {
  readonly #deps: SharedListDeps
  readonly #states = new Map<string, State>()
  #onDeleted: FollowChanges['onDeleted'] = () => {}
  #onAdded: FollowChanges['onAdded'] = async () => {}
  #position: number
  /** The conversations that the last call returned as deleted: the next one can return them again. */
  #deleted: ReadonlySet<string> = new Set()
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | undefined

  /** `position`: before anything was read of what is known. */
  constructor(deps: SharedListDeps, position: number) {
    this.#deps = deps
    this.#position = position
  }

  /** Resolves when all is known that any instance has stored before the call. Throws the `Problem` of the storage. */
  upToDate(): Promise<void> {
    // What runs may have read before that.
    return (this.#next ??= this.#runAfter(this.#running))
  }

  /** Resolves when the signal is aborted. Never rejects. */
  async follow({ onDeleted, onAdded, signal }: FollowChanges): Promise<void> {
    this.#onDeleted = onDeleted
    this.#onAdded = onAdded
    while (!signal.aborted) {
      await sleep(INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {})
      // The storage reports its own failures.
      if (!signal.aborted) await this.upToDate().catch(() => {})
    }
  }

  /** Returns the state after the last stored event, without opening the log. Undefined if it cannot be read. */
  async stateOf(id: string): Promise<State | undefined> {
    return await this.#read(id).catch(() => undefined)
  }

  async #runAfter(running: Promise<unknown>): Promise<void> {
    await running
    this.#next = undefined
    const run = this.#run()
    this.#running = run.catch(() => {}) // reported to the caller
    await run
  }

  async #run(): Promise<void> {
    const { shared, summaries } = this.#deps
    const { position, changed, deleted } = await shared.changes(this.#position)
    if (changed.some(({ id }) => !summaries.get(id))) await this.#onAdded()
    await mapBounded(changed, CONCURRENCY, (one) => this.#learn(one))
    for (const id of deleted) if (!this.#deleted.has(id)) this.#forget(id)
    this.#deleted = new Set(deleted)
    this.#position = position
  }

  #forget(id: string): void {
    const { summaries } = this.#deps
    // Undefined if it was created a moment ago: no reader has received an event of it here.
    const { userId, profile } = summaries.get(id) ?? {}
    summaries.delete(id)
    this.#states.delete(id)
    this.#onDeleted({ id, userId, profile })
  }

  async #learn({ id, lastSeq, summary }: ListedConversation): Promise<void> {
    const { summaries, logger } = this.#deps
    // It is returned again, or this instance has taken it over since.
    const isKnown = (seq: number) => seq <= (summaries.get(id)?.lastSeq ?? 0)
    if (isKnown(lastSeq)) return
    try {
      const foundSummary = summary ? { ...NO_VALUES, ...summary } : summaryOf(await this.#read(id))
      if (foundSummary && !isKnown(foundSummary.lastSeq)) summaries.set(foundSummary)
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'this conversation of another instance cannot be read')
    }
  }

  async #read(id: string): Promise<State | undefined> {
    const { storage } = this.#deps
    const notedState = this.#states.get(id) ?? (await readSnapshot(storage, id))
    const state = await readSharedState(storage, id, notedState)
    this.#states.delete(id)
    if (state) this.#states.set(id, state)
    for (const first of this.#states.keys()) {
      if (this.#states.size <= MAX_STATES) break
      this.#states.delete(first)
    }
    return state
  }
}

const summaryOf = (state: State | undefined) => state && sharedSummary(state)

/** What JSON leaves out: without these, a former value would stay. */
const NO_VALUES = {
  title: undefined,
  userId: undefined,
  profile: undefined,
  model: undefined,
  costUsd: undefined,
  waitsSince: undefined,
  deadline: undefined,
  currentCall: undefined,
  idempotency: undefined,
}
