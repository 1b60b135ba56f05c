/** Which conversations there are and how each was last, in memory and in the file that makes the next start quick. Opens none. */
import type { ConversationView, CountConversations, ListConversations } from '../../contract/conversation.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { CreationKey, Summary } from '../../storage/storage.ts'
import type { IsVisible } from './listing.ts'
import { summarize } from './listing.ts'
import { RestingViews } from './resting-views.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'
import type { StartUpDeps } from './start-up.ts'
import { scanDataDirectory } from './start-up.ts'
import type { State } from '../state/state.ts'
import { Summaries } from './summaries.ts'

export class KnownConversations {
  readonly #deps: StartUpDeps
  readonly #summaries = new Summaries()
  readonly #resting: RestingViews

  constructor(deps: StartUpDeps) {
    this.#deps = deps
    this.#resting = new RestingViews((id) => readSnapshot(deps.storage, id))
  }

  /** Returns the `Idempotency-Key`s that count, also of those that are deleted. Throws the reason of a signal that is aborted. */
  async load(signal: AbortSignal): Promise<CreationKey[]> {
    const { summaries, deletedKeys } = await scanDataDirectory(this.#deps, signal)
    this.#summaries.load(summaries)
    // Beside what clients ask for.
    void this.#deps.storage.summaries.tidy((id) => this.has(id))
    return [...deletedKeys, ...summaries.flatMap(keyOf)]
  }

  has(id: string): boolean {
    return this.#summaries.has(id)
  }

  get(id: string): Summary | undefined {
    return this.#summaries.get(id)
  }

  set(state: State): void {
    this.#summaries.set(summarize(state))
  }

  /** Keeps a change, in memory and in `meta.json`; that file is only a cache. Ignores conversations that are not known. */
  readonly update = (state: State): void => {
    const { storage, logger } = this.#deps
    if (!this.has(state.id)) return
    this.set(state)
    writeSnapshot(storage, state).catch(
      (error: unknown) =>
        this.has(state.id) && logger.warn({ err: error, conversation_id: state.id }, 'meta.json could not be written'),
    )
  }

  setDamaged(id: string): void {
    const summary = this.get(id)
    if (summary) this.#summaries.set({ ...summary, status: 'error' })
  }

  /** From here on it is not known. */
  delete(id: string): void {
    this.#summaries.delete(id)
    this.#resting.forget(id)
  }

  /** Nothing is left in the file when it resolves. */
  async forget(id: string): Promise<void> {
    await this.#deps.storage.summaries.forget(id)
  }

  count(filter: CountConversations, isVisible?: IsVisible): number {
    return this.#summaries.count(filter, isVisible)
  }

  /** Throws a `Problem` for a `page_id` that no page gave. */
  page(query: ListConversations, isVisible?: IsVisible): { ids: string[]; nextPageId: string | null } {
    return this.#summaries.page(query, isVisible)
  }

  /** Of one that is not open. Undefined when it has to be opened to know how it is. */
  async viewAtRest(id: string): Promise<ConversationView | undefined> {
    const summary = this.get(id)
    return summary && (await this.#resting.view(summary))
  }

  /** The last seq of each; undefined of those whose log could not be read. */
  *heads(): Iterable<readonly [id: string, head: number | undefined]> {
    for (const { id, lastSeq } of this.#summaries.values()) yield [id, lastSeq || undefined]
  }

  /** To be called with each log that is opened or made, before anything is appended to it. */
  attach(log: EventLog): void {
    const { conversationId: id } = log
    log.subscribe({
      onEvents: (events) => {
        // oxlint-disable-next-line typescript/no-non-null-assertion -- subscribers get at least one event
        const { seq, event } = events.at(-1)!
        this.#summaries.advance(id, { lastSeq: seq, updatedAt: Date.parse(event.timestamp) })
      },
      onClose: () => this.#note(log),
    })
  }

  /** Nobody writes the log now, and what is in it is what the summary was made from. */
  #note(log: EventLog): void {
    const summary = this.get(log.conversationId)
    if (log.failed || summary?.lastSeq !== log.head) return
    this.#deps.storage.summaries.noteFor(log.conversationId)({ ...summary })
  }
}

export function keyOf({ id, createdAt, idempotency }: Summary): CreationKey[] {
  return idempotency ? [{ ...idempotency, id, at: new Date(createdAt).toISOString() }] : []
}
