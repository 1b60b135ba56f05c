/** The requests of all conversations that wait, the oldest first, page by page. Opens no conversation that is at rest. */
import { Problem } from '../../contract/problem.ts'
import type { ListAllRequests, OpenRequest, WaitingRequest, WaitingRequests } from '../../contract/request.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { Summary } from '../../storage/storage.ts'
import { compareRequests } from '../requests/requests.ts'
import { storedRequests } from '../../state/open-requests.ts'
import type { KnownConversations } from './known-conversations.ts'
import type { IsVisible } from './listing.ts'
import type { OpenConversations } from './open-conversations.ts'

type Sources = {
  readonly known: Pick<KnownConversations, 'all' | 'stateAtRest'>
  readonly open: Pick<OpenConversations, 'openIds' | 'ifOpen' | 'open'>
}

type Position = Pick<OpenRequest, 'opened_at' | 'request_id'>

/** Throws a `Problem` for an invalid `page_id`. */
export async function pageOfRequests(
  sources: Sources,
  { kinds, limit, page_id }: ListAllRequests,
  isVisible: IsVisible = () => true,
): Promise<WaitingRequests> {
  const after = page_id === undefined ? undefined : positionOf(page_id)
  const found: WaitingRequest[] = []
  const add = (summary: Summary, requests: readonly OpenRequest[]) => {
    for (const request of requests)
      if ((!kinds || kinds.has(request.kind)) && (!after || compareRequests(after, request) < 0))
        found.push(rowOf(summary, request))
  }
  const resting = await addOpen(sources, isVisible, add)
  for (const summary of resting) {
    // What follows is newer than the whole page.
    if (found.length > limit && summary.waitsSince > Date.parse(nth(found, limit).request.opened_at)) break
    add(summary, await requestsAtRest(sources, summary.id))
  }
  const sorted = found.sort((a, b) => compareRequests(a.request, b.request))
  const items = sorted.slice(0, limit)
  const last = items.at(-1)?.request
  const isMore = last && sorted.length > items.length
  return { items, next_page_id: isMore ? encodePageId([last.opened_at, last.request_id]) : null }
}

type Resting = Summary & { readonly waitsSince: number }

/** Adds the requests of open conversations. Returns the others that wait, by the time of their oldest request. */
async function addOpen(
  { known, open }: Sources,
  isVisible: IsVisible,
  add: (summary: Summary, requests: readonly OpenRequest[]) => void,
): Promise<Resting[]> {
  const openIds = new Set(open.openIds())
  const resting: Resting[] = []
  for (const summary of known.all()) {
    if (!isVisible(summary)) continue
    const conversation = openIds.has(summary.id) ? await open.ifOpen(summary.id) : undefined
    if (conversation) add(summary, conversation.requests.list())
    else if (summary.waitsSince !== undefined) resting.push({ ...summary, waitsSince: summary.waitsSince })
  }
  return resting.sort((a, b) => a.waitsSince - b.waitsSince)
}

async function requestsAtRest({ known, open }: Sources, id: string): Promise<readonly OpenRequest[]> {
  const state = await known.stateAtRest(id)
  if (state) return storedRequests(state)
  // `meta.json` was removed or could not be written; or the conversation was deleted or damaged meanwhile.
  const conversation = await open.open(id).catch(() => undefined)
  return conversation?.requests.list() ?? []
}

function nth(found: WaitingRequest[], place: number): WaitingRequest {
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there are more than `place`
  return found.sort((a, b) => compareRequests(a.request, b.request))[place]!
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
