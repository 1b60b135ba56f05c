/**
 * All existing conversations and their last known state, in memory and in the file that makes the next start fast. Where other
 * instances have conversations, too, they are listed in the background of the start. Opens none.
 */
import type { ConversationView } from '../../contract/conversation.ts'
import type { ConversationCount, CountConversations, ListConversations } from '../../contract/conversation.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { SharedConversations } from '../../storage/instances.ts'
import type { CreationKey, Summary } from '../../storage/storage.ts'
import type { IsVisible } from './listing.ts'
import { summarize } from './listing.ts'
import { Deadlines } from './deadlines.ts'
import { RestingViews } from './resting-views.ts'
import { isShort, readAtRest, writeSnapshot } from '../../state/snapshot.ts'
import type { StartUpDeps } from './start-up.ts'
import type { ListListeners, SharedList } from './shared-list.ts'
import { beginShared, removeLeft, scanDataDirectory } from './start-up.ts'
import type { State } from '../../state/state.ts'
import { Summaries } from './summaries.ts'

export class KnownConversations {
  readonly #deps: StartUpDeps
  readonly #summaries = new Summaries()
  readonly #resting: RestingViews
  /** Undefined while no other instance may use the storage. */
  #shared: SharedList | undefined
  #following: Promise<void> | undefined
  /** The conversations that this process has opened, if other instances may have opened them, too. */
  readonly #opened = new Set<string>()
  readonly deadlines = new Deadlines()
  /** The states that are in `meta.json`, or are being written there. */
  readonly #stored = new WeakSet<State>()

  constructor(deps: StartUpDeps) {
    this.#deps = deps
    this.#resting = new RestingViews((summary) => this.#readAtRest(summary), {
      mayBeNewer: deps.storage.shared !== undefined,
    })
  }

  /** Throws the reason of an aborted signal. */
  async load(listeners: ListListeners): Promise<void> {
    const { shared } = this.#deps.storage
    if (shared) return await this.#share(shared, listeners)
    const { summaries, deletedKeys } = await scanDataDirectory(this.#deps, listeners.signal)
    this.#addAll(summaries)
    // Runs while clients are served.
    void this.#deps.storage.summaries.tidy((id) => this.has(id))
    listeners.onKeys([...deletedKeys, ...summaries.flatMap(keyOf)])
  }

  has(id: string): boolean {
    return this.#summaries.has(id)
  }

  get(id: string): Summary | undefined {
    return this.#summaries.get(id)
  }

  /** Called, as `delete` is, by `Phases` alone: it decides which conversations exist. */
  add(state: State): void {
    this.#set(summarize(state))
  }

  /** Resolves when all is known that other instances have stored before the call. Throws the `Problem` of the storage. */
  async upToDate(): Promise<void> {
    await this.#shared?.upToDate()
  }

  /** Resolves to true if there is this conversation, also if another instance has created it. Throws the `Problem` of the storage. */
  async seek(id: string): Promise<boolean> {
    if (!this.has(id)) await this.#shared?.seek(id)
    return this.has(id)
  }

  /** Does the same, and returns it. */
  async find(id: string): Promise<Summary | undefined> {
    return (await this.seek(id)) ? this.get(id) : undefined
  }

  /** False until the start has listed the existing conversations. */
  get isComplete(): boolean {
    return this.#shared?.isComplete ?? true
  }

  /** Resolves when it `isComplete`. Throws the `Problem` of the storage. */
  readonly untilComplete = async (): Promise<void> => {
    if (!this.isComplete) await this.upToDate()
  }

  /** Lists the conversations of all instances, and learns what these do, until the signal is aborted. */
  follow(): void {
    this.#following = this.#shared?.follow()
  }

  /** Resolves when nothing is read any more. Call it when the signal was aborted. */
  async settled(): Promise<void> {
    await this.#following
  }

  /** Call it with a conversation that is being opened: removes what an earlier process has left of its work. Never rejects. */
  readonly removeLeft = async (id: string): Promise<void> => {
    // Otherwise the start does it.
    if (this.#shared && !this.#opened.has(id)) await removeLeft(this.#deps, id)
  }

  async #share(sharedConversations: SharedConversations, listeners: ListListeners): Promise<void> {
    // This precedes all that is read.
    const position = await sharedConversations.position()
    await beginShared(this.#deps)
    const { SharedList: List } = await import('./shared-list.ts')
    const knownSummaries = {
      get: (id: string) => this.get(id),
      set: (summary: Summary) => this.#set(summary),
      addAll: (foundSummaries: readonly Summary[]) => this.#addAll(foundSummaries),
      delete: (id: string) => this.delete(id),
    }
    const deps = { ...this.#deps, ...listeners, shared: sharedConversations, summaries: knownSummaries }
    this.#shared = new List({ ...deps, keysOf: keyOf }, position)
  }

  /** Stores what was read from the log. Ignores unknown conversations. */
  readonly refresh = (state: State): void => {
    if (this.has(state.id)) this.#set(summarize(state))
  }

  /** Stores a change in memory and in `meta.json`, which is only a cache. Ignores unknown conversations. */
  readonly update = (state: State): void => {
    const { logger } = this.#deps
    if (!this.has(state.id)) return
    this.#set(summarize(state))
    // The end of the run follows; after a crash it is recovered from its log, open or not.
    if (state.status === 'running') return
    this.store(state).catch(
      (error: unknown) =>
        this.has(state.id) && logger.warn({ err: error, conversation_id: state.id }, 'meta.json could not be written'),
    )
  }

  /** Writes `meta.json`, unless it has this very state, or the log is so short that it is as good. */
  async store(state: State): Promise<void> {
    if (this.#stored.has(state) || isShort(state.lastSeq)) return
    this.#stored.add(state)
    try {
      await writeSnapshot(this.#deps.storage, state)
    } catch (error) {
      this.#stored.delete(state)
      throw error
    }
  }

  setDamaged(id: string): void {
    const summary = this.get(id)
    if (summary) this.#summaries.set({ ...summary, status: 'error' })
  }

  /** Removes the conversation from memory. */
  delete(id: string): void {
    this.#summaries.delete(id)
    this.deadlines.set(id, undefined)
    this.#resting.forget(id)
    this.#opened.delete(id)
    this.#shared?.forget(id)
  }

  /** Resolves when nothing of it is left in the file. */
  async forget(id: string): Promise<void> {
    await this.#deps.storage.summaries.forget(id)
  }

  count(query: CountConversations, isVisible?: IsVisible): ConversationCount {
    return this.#summaries.count(query, isVisible)
  }

  /** Throws a `Problem` for an invalid `page_id`. */
  page(query: ListConversations, isVisible?: IsVisible): { ids: string[]; nextPageId: string | null } {
    return this.#summaries.page(query, isVisible)
  }

  /** Returns the view of a conversation that is not open. Undefined if it must be opened to know its state. */
  async viewAtRest(id: string): Promise<ConversationView | undefined> {
    const summary = this.get(id)
    const view = summary && (await this.#resting.view(summary))
    // It was deleted while it was read, and nobody would remove it from the cache.
    if (!this.has(id)) this.#resting.forget(id)
    return view
  }

  all(): Iterable<Summary> {
    return this.#summaries.values()
  }

  /** Returns the state of a conversation that is not open, if it can be read as of its last event without opening it. */
  async stateAtRest(id: string): Promise<State | undefined> {
    const summary = this.get(id)
    const state = summary && (await this.#readAtRest(summary))
    return this.#shared || state?.lastSeq === summary?.lastSeq ? state : undefined
  }

  /** Reads the state of its end, which may be after the summary if there are several instances. */
  async #readAtRest({ id, lastSeq }: Summary): Promise<State | undefined> {
    if (this.#shared) return await this.#shared.stateOf(id)
    return await readAtRest(this.#deps.storage, id, lastSeq)
  }

  /** Yields the last seq of each; undefined if its log could not be read. */
  *heads(): Iterable<readonly [id: string, head: number | undefined]> {
    for (const { id, lastSeq } of this.#summaries.values()) yield [id, lastSeq || undefined]
  }

  /** Call it with each log that is opened or created, before anything is appended to it. */
  attach(log: EventLog): void {
    const { conversationId: id } = log
    if (this.#shared) this.#opened.add(id)
    log.subscribe({
      onEvents: (events) => {
        // oxlint-disable-next-line typescript/no-non-null-assertion -- subscribers get at least one event
        const { seq, event } = events.at(-1)!
        this.#summaries.advance(id, { lastSeq: seq, updatedAt: Date.parse(event.timestamp) })
      },
      onClose: () => this.#note(log),
    })
  }

  #addAll(summaries: readonly Summary[]): void {
    this.#summaries.addAll(summaries)
    for (const { id } of summaries) this.deadlines.set(id, this.get(id)?.deadline)
  }

  #set(summary: Summary): void {
    this.#summaries.set(summary)
    this.deadlines.set(summary.id, summary.deadline)
  }

  /** Call it when nothing writes the log any more; the summary matches the log then. */
  #note(log: EventLog): void {
    const summary = this.get(log.conversationId)
    if (log.failed || summary?.lastSeq !== log.head) return
    this.#deps.storage.summaries.noteFor(log.conversationId)({ ...summary })
  }
}

export function keyOf({ id, createdAt, idempotency }: Summary): CreationKey[] {
  return idempotency ? [{ ...idempotency, id, at: new Date(createdAt).toISOString() }] : []
}
