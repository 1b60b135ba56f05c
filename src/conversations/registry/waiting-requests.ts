/** The requests of all conversations that wait, the oldest first, page by page. Opens no conversation that is at rest. */
import { Problem } from '../../contract/problem.ts'
import type { ListAllRequests, OpenRequest, WaitingRequest, WaitingRequests } from '../../contract/request.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { Summary } from '../../storage/storage.ts'
import { compareRequests } from '../requests/requests.ts'
import { openRequests, restingRequests } from '../../state/open-requests.ts'
import type { KnownConversations } from './known-conversations.ts'
import type { IsVisible } from './listing.ts'
import type { OpenConversations } from '../open-conversations.ts'

type Sources = {
  readonly conversations: Pick<KnownConversations, 'all' | 'stateAtRest'>
  readonly open: Pick<OpenConversations, 'openIds' | 'ifOpen' | 'open'>
  /** True if other instances have conversations too: what is not open here may be open there. */
  readonly isShared?: boolean
}

type Position = Pick<OpenRequest, 'opened_at' | 'request_id'>

type Resting = Summary & { readonly waitsSince: number }

export class WaitingRequestPages {
  readonly #sources: Sources
  /** The times when the newest requests of conversations at rest were opened, by id; valid while a log is as long. */
  #newest = new Map<string, { readonly lastSeq: number; readonly openedAt: string }>()

  constructor(sources: Sources) {
    this.#sources = sources
  }

  /** Throws a `Problem` for an invalid `page_id`. */
  async page({ kinds, limit, page_id }: ListAllRequests, isVisible: IsVisible = () => true): Promise<WaitingRequests> {
    const after = page_id === undefined ? undefined : positionOf(page_id)
    const foundRequests: WaitingRequest[] = []
    const add = (summary: Summary, requests: readonly OpenRequest[]) => {
      for (const request of requests)
        if ((!kinds || kinds.has(request.kind)) && (!after || compareRequests(after, request) < 0))
          foundRequests.push(rowOf(summary, request))
    }
    for (const summary of await this.#addOpen(isVisible, add)) {
      // What follows is newer than the whole page.
      if (foundRequests.length > limit && summary.waitsSince > Date.parse(nth(foundRequests, limit).request.opened_at))
        break
      if (!after || this.#mayFollow(summary, after)) add(summary, await this.#requestsAtRest(summary))
    }
    const sortedRequests = foundRequests.sort((a, b) => compareRequests(a.request, b.request))
    const items = sortedRequests.slice(0, limit)
    const last = items.at(-1)?.request
    const isMore = last && sortedRequests.length > items.length
    return { items, next_page_id: isMore ? encodePageId([last.opened_at, last.request_id]) : null }
  }

  /** Adds the requests of open conversations. Returns the others that wait, by the time of their oldest request. */
  async #addOpen(
    isVisible: IsVisible,
    add: (summary: Summary, requests: readonly OpenRequest[]) => void,
  ): Promise<Resting[]> {
    const { conversations: registry, open } = this.#sources
    const openIds = new Set(open.openIds())
    const resting: Resting[] = []
    const newest = new Map<string, { readonly lastSeq: number; readonly openedAt: string }>()
    for (const summary of registry.all()) {
      const { id, waitsSince } = summary
      const notedRequest = this.#newest.get(id)
      if (notedRequest && waitsSince !== undefined) newest.set(id, notedRequest)
      if (!isVisible(summary)) continue
      const conversation = openIds.has(id) ? await open.ifOpen(id) : undefined
      if (conversation) add(summary, conversation.requests.list())
      else if (waitsSince !== undefined) resting.push({ ...summary, waitsSince })
    }
    this.#newest = newest
    return resting.sort((a, b) => a.waitsSince - b.waitsSince)
  }

  /** False if an earlier page has shown that all of its requests come before this position. */
  #mayFollow({ id, lastSeq }: Summary, after: Position): boolean {
    const notedRequest = this.#newest.get(id)
    return notedRequest?.lastSeq !== lastSeq || notedRequest.openedAt >= after.opened_at
  }

  async #requestsAtRest({ id, lastSeq }: Summary): Promise<readonly OpenRequest[]> {
    const { conversations: registry, open, isShared } = this.#sources
    const state = await registry.stateAtRest(id)
    if (!state && isShared) return []
    if (!state) {
      // `meta.json` was removed or could not be written; or the conversation was deleted or damaged meanwhile.
      const conversation = await open.open(id).catch(() => undefined)
      return conversation?.requests.list() ?? []
    }
    const requests = (isShared ? openRequests : restingRequests)(state)
    const openedAt = requests.reduce((latest, { opened_at }) => (opened_at > latest ? opened_at : latest), '')
    this.#newest.set(id, { lastSeq, openedAt })
    return requests
  }
}

function nth(foundRequests: WaitingRequest[], place: number): WaitingRequest {
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there are more than `place`
  return foundRequests.sort((a, b) => compareRequests(a.request, b.request))[place]!
}

const rowOf = ({ id, title, userId }: Summary, request: OpenRequest): WaitingRequest => ({
  conversation_id: id,
  ...(title !== undefined && { title }),
  ...(userId !== undefined && { user_id: userId }),
  request,
})

function positionOf(pageId: string): Position {
  const [opened_at, request_id] = decodePageId(pageId) ?? []
  if (opened_at !== undefined && request_id !== undefined) return { opened_at, request_id }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued by this server; leave it out to start from the first page.',
  )
}
