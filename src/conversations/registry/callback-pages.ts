/** The callbacks of all conversations, page by page, the newest conversation first. Opens none. */
import type { CallbackState, CallbackStates, ListAllCallbacks } from '../../contract/callback.ts'
import { Problem } from '../../contract/problem.ts'
import { isUnreadable } from '../../lib/error-code.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { Storage, Summary } from '../../storage/storage.ts'
import { isFailing, statesAtRest } from '../../webhooks/delivery-state.ts'
import type { OpenConversations } from '../open-conversations.ts'
import type { KnownConversations } from './known-conversations.ts'
import type { IsVisible } from './listing.ts'
import { compareSummaries } from './listing.ts'

/** Conversations that are read at the same time, and for one page: most have no callback. */
const [CONCURRENCY, MAX_READ] = [64, 4096]

type Sources = {
  readonly registry: Pick<KnownConversations, 'all' | 'upToDate'>
  readonly open: Pick<OpenConversations, 'ifOpen'>
  readonly storage: Pick<Storage, 'conversation'>
}

export class CallbackPages {
  readonly #sources: Sources

  constructor(sources: Sources) {
    this.#sources = sources
  }

  /** Throws a `Problem` for an invalid `page_id`. */
  async page(
    { failing, limit, page_id }: ListAllCallbacks,
    isVisible: IsVisible = () => true,
  ): Promise<CallbackStates> {
    const { registry } = this.#sources
    const before = page_id === undefined ? undefined : positionOf(page_id)
    await registry.upToDate()
    const remainingSummaries = [...registry.all()]
      .filter((one) => isVisible(one) && (!before || compareSummaries(one, before) < 0))
      .sort((a, b) => compareSummaries(b, a))
    const items: CallbackState[] = []
    let readCount = 0
    while (readCount < Math.min(remainingSummaries.length, MAX_READ) && items.length < limit) {
      const some = remainingSummaries.slice(readCount, readCount + CONCURRENCY)
      const states = await mapBounded(some, CONCURRENCY, (one) => this.#statesOf(one))
      for (const callbackState of states) {
        readCount += 1
        items.push(...callbackState.filter((state) => failing === undefined || isFailing(state) === failing))
        if (items.length >= limit) break
      }
    }
    const last = readCount < remainingSummaries.length ? remainingSummaries[readCount - 1] : undefined
    return { items, next_page_id: last ? encodePageId([new Date(last.createdAt).toISOString(), last.id]) : null }
  }

  async #statesOf({ id, title, userId }: Summary): Promise<CallbackState[]> {
    const { open, storage } = this.#sources
    const conversation = await open.ifOpen(id)
    const atRest = async () => await statesAtRest(storage.conversation(id))
    const states = conversation ? conversation.webhooks.states() : await atRest().catch(ignoreUnreadable)
    const shownNames = { ...(title !== undefined && { title }), ...(userId !== undefined && { user_id: userId }) }
    return states.map((state) => ({ conversation_id: id, ...shownNames, ...state }))
  }
}

/** A damaged one is reported when its conversation is opened. */
function ignoreUnreadable(error: unknown): readonly never[] {
  if (!isUnreadable(error)) throw error
  return []
}

function positionOf(pageId: string): Pick<Summary, 'id' | 'createdAt'> {
  const [time = '', id] = decodePageId(pageId) ?? []
  const createdAt = Date.parse(time)
  if (id !== undefined && !Number.isNaN(createdAt)) return { id, createdAt }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued by this server; leave it out to start from the first page.',
  )
}
