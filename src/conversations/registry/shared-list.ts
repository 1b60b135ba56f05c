/**
 * Lists the conversations of all instances of the same storage: all of them in the background of a start, and then what any
 * instance creates, changes and deletes. Takes over none of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { readSnapshot } from '../../state/snapshot.ts'
import type { State } from '../../state/state.ts'
import type { ListedConversation, SharedConversations } from '../../storage/instances.ts'
import { KEY_LIFETIME_MS } from '../../state/idempotency.ts'
import type { CreationKey, Summary } from '../../storage/storage.ts'
import { readSharedState } from './read-state.ts'
import type { StartUpDeps } from './start-up.ts'
import { finishDeletion, readSummary, sweep } from './start-up.ts'
import type { Summaries } from './summaries.ts'
import { sharedSummary } from './summary-rows.ts'

export type ListListeners = {
  /** Called with each conversation that another instance has deleted. */
  readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId' | 'profile'>) => void
  /** Called before conversations are listed that another instance has created. */
  readonly onAdded: () => Promise<void>
  /** Called with the remembered `Idempotency-Key`s, including those of deleted conversations. */
  readonly onKeys: (keys: readonly CreationKey[]) => void
  /** Aborted when nothing is to be read any more. */
  readonly signal: AbortSignal
}

export type SharedListDeps = StartUpDeps &
  ListListeners & {
    readonly shared: SharedConversations
    readonly summaries: Pick<Summaries, 'get' | 'set' | 'addAll' | 'delete'>
    /** Returns its keys. */
    readonly keysOf: (summary: Summary) => readonly CreationKey[]
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
  #position: number
  #isComplete = false
  #removing: Promise<void> | undefined
  /** Reads in progress, and what was deleted since the first of them: what they have read does not list it again. */
  #reads = 0
  readonly #deletedMeanwhile = new Set<string>()
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

  /** False until all conversations are listed that there were at the start. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Lists all, and then what changes. Resolves when the signal is aborted, and nothing is read any more. Never rejects. */
  async follow(): Promise<void> {
    const { signal } = this.#deps
    while (!signal.aborted) {
      // The storage reports its own failures.
      await this.upToDate().catch(() => {})
      await sleep(INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {})
    }
    await this.#removing
  }

  /** Lists this conversation, if there is one. Does not wait for the list of all. Throws the `Problem` of the storage. */
  async seek(id: string): Promise<void> {
    await this.#reading(async () => {
      const conversation = await this.#deps.shared.listed(id)
      if (!conversation) return
      await this.#deps.onAdded()
      const foundSummary = await this.#summaryOf(conversation)
      if (foundSummary) this.#deps.summaries.addAll(this.#withoutDeleted([foundSummary]))
    })
  }

  /** Call it when this instance has deleted the conversation. */
  forget(id: string): void {
    this.#states.delete(id)
    if (this.#reads > 0) this.#deletedMeanwhile.add(id)
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
    const { shared, summaries, onAdded } = this.#deps
    if (!this.#isComplete) await this.#reading(() => this.#listAll())
    await this.#reading(async () => {
      const { position, changed, deleted } = await shared.changes(this.#position)
      if (changed.some(({ id }) => !summaries.get(id))) await onAdded()
      await mapBounded(changed, CONCURRENCY, (one) => this.#learn(one))
      for (const id of deleted) if (!this.#deleted.has(id)) this.#forgetOfOther(id)
      this.#deleted = new Set(deleted)
      this.#position = position
    })
  }

  /** A failed attempt is repeated from the beginning. */
  async #listAll(): Promise<void> {
    const { shared, storage, summaries, onKeys, onAdded, keysOf, signal } = this.#deps
    const foundSummaries: Summary[] = []
    for await (const part of shared.all()) {
      signal.throwIfAborted()
      const partSummaries = await mapBounded(part, CONCURRENCY, (one) => this.#summaryOf(one))
      for (const summary of partSummaries) if (summary) foundSummaries.push(summary)
    }
    onKeys([...(await storage.deletions.keys(Date.now() - KEY_LIFETIME_MS)), ...foundSummaries.flatMap(keysOf)])
    await onAdded()
    // All at once: one by one, they would be inserted in the middle of long lists.
    summaries.addAll(this.#withoutDeleted(foundSummaries))
    this.#isComplete = true
    this.#removing = this.#removeRemains()
  }

  async #removeRemains(): Promise<void> {
    const { shared, storage, summaries, logger, signal } = this.#deps
    try {
      const { created, deleted } = await shared.remains()
      for (const id of deleted) if (!signal.aborted) await finishDeletion(this.#deps, id)
      for (const id of created) if (!signal.aborted) await sweep(this.#deps, id)
      await storage.summaries.tidy((id) => summaries.get(id) !== undefined)
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'what interrupted requests have left could not be removed')
    }
  }

  async #reading(read: () => Promise<void>): Promise<void> {
    this.#reads += 1
    try {
      await read()
    } finally {
      this.#reads -= 1
      if (this.#reads === 0) this.#deletedMeanwhile.clear()
    }
  }

  #forgetOfOther(id: string): void {
    const { summaries, onDeleted } = this.#deps
    // Undefined if it was created a moment ago: no reader has received an event of it here.
    const { userId, profile } = summaries.get(id) ?? {}
    summaries.delete(id)
    onDeleted({ id, userId, profile })
  }

  /** Returns a summary with the status `error` if the conversation cannot be read. */
  async #summaryOf({ id, summary, former }: ListedConversation): Promise<Summary | undefined> {
    return summary ? { ...NO_VALUES, ...summary } : await readSummary(this.#deps, id, former, this.#deps.signal)
  }

  #withoutDeleted(foundSummaries: readonly Summary[]): readonly Summary[] {
    return foundSummaries.filter(({ id }) => !this.#deletedMeanwhile.has(id))
  }

  async #learn({ id, lastSeq, summary }: ListedConversation): Promise<void> {
    const { summaries, logger } = this.#deps
    // It is returned again, this instance has taken it over since, or has deleted it.
    const isKnown = (seq: number) => seq <= (summaries.get(id)?.lastSeq ?? 0) || this.#deletedMeanwhile.has(id)
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
  isQueued: undefined,
  idempotency: undefined,
}
