/** Pages of the list of conversations, in full or as short rows. No log is opened for them. */
import type { ConversationView, ListConversations } from '../../contract/conversation.ts'
import type { ConversationSummaries, ConversationSummary } from '../../contract/conversations/summary.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { LogView } from '../../events/event-store.ts'
import { readSnapshot } from '../../state/snapshot.ts'
import type { State } from '../../state/state.ts'
import { viewOf } from '../../state/view.ts'
import type { ConversationDeps } from '../dependencies.ts'
import { withContextSize } from './context-size.ts'
import type { OpenConversations } from '../open-conversations.ts'
import type { Attendance } from './attendance.ts'
import type { KnownConversations } from './known-conversations.ts'
import type { IsVisible } from './listing.ts'
import { foldLog } from './read-state.ts'
import { damagedView } from './resting-views.ts'
import { liveSummaryRow, summaryRow } from './summary-rows.ts'

/** The number of conversations that are read at the same time. */
const VIEW_CONCURRENCY = 64

type Sources = {
  readonly registry: KnownConversations
  readonly open: OpenConversations
  readonly attendance: Attendance
  readonly conversations: ConversationDeps
}

/** A conversation as it is stored: it is not opened, and another instance may write it. */
export type ReadOnlyConversation = AsyncDisposable & {
  readonly id: string
  readonly log: LogView
  readonly state: Pick<State, 'rewound' | 'settings'>
}

export type ViewPage = { items: ConversationView[]; next_page_id: string | null }

export class ConversationPages {
  readonly #sources: Sources

  constructor(sources: Sources) {
    this.#sources = sources
  }

  /** False until a start has listed the existing conversations: counts are too low until then. */
  get areComplete(): boolean {
    return this.#sources.registry.isComplete
  }

  /** Throws a `Problem` for an invalid `page_id`. */
  async page(query: ListConversations, isVisible?: IsVisible): Promise<ViewPage> {
    const { ids, nextPageId } = this.#sources.registry.page(query, isVisible)
    const views = await mapBounded(ids, VIEW_CONCURRENCY, (id) => this.viewWithoutOpening(id))
    return { items: views.filter((view) => view !== undefined), next_page_id: nextPageId }
  }

  /** Returns the conversations of this instance whose run has ended while their subagents or tasks still work. */
  async inBackground(): Promise<ConversationView[]> {
    const { open } = this.#sources
    const conversations = await Promise.all([...open.openIds()].map(open.ifOpen))
    return conversations.flatMap((each) => (each?.isWorking && each.state.status !== 'running' ? [each.view()] : []))
  }

  /** Returns the same page as short rows, from memory. */
  async summaries(query: ListConversations, isVisible?: IsVisible): Promise<ConversationSummaries> {
    const { ids, nextPageId } = this.#sources.registry.page(query, isVisible)
    return { items: await this.rows(ids), next_page_id: nextPageId }
  }

  /** Returns short rows of these conversations, without those that do not exist. */
  async rows(ids: readonly string[]): Promise<ConversationSummary[]> {
    const { registry, open, attendance } = this.#sources
    const rows = await mapBounded(ids, VIEW_CONCURRENCY, async (id) => {
      const conversation = await open.ifOpen(id)
      const summary = registry.get(id)
      if (!summary) return []
      const isAttended = attendance.has(id)
      return [conversation ? liveSummaryRow(conversation, isAttended) : summaryRow(summary, isAttended)]
    })
    return rows.flat()
  }

  /** Throws the `Problem` of its log. */
  async stored(id: string): Promise<ReadOnlyConversation> {
    const { registry, open, conversations } = this.#sources
    const log = await conversations.storage.view(id)
    try {
      const state =
        (await open.ifOpen(id))?.state ?? (await registry.stateAtRest(id)) ?? (await foldLog(log, undefined))
      return { id, log, state, [Symbol.asyncDispose]: () => log[Symbol.asyncDispose]() }
    } catch (error) {
      await log[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Undefined if it does not exist. */
  async viewWithoutOpening(id: string): Promise<ConversationView | undefined> {
    const { registry, open, conversations } = this.#sources
    const conversation = await open.ifOpen(id)
    if (conversation && registry.has(id)) return conversation.view()
    const view = await registry.viewAtRest(id)
    if (!registry.has(id)) return undefined
    const { catalog } = conversations.models
    if (view) return withContextSize(view, catalog)
    // `meta.json` was removed, or could not be written. With several instances, another one may have it.
    const reopenedConversation = conversations.storage.shared ? undefined : await open.open(id).catch(() => undefined)
    if (reopenedConversation) {
      registry.update(reopenedConversation.state)
      return reopenedConversation.view()
    }
    const state = await readSnapshot(conversations.storage, id)
    const now = registry.get(id)
    return now && withContextSize(viewOf(damagedView(state, now)), catalog)
  }
}
