/** Filters and pages of conversation lists, over an order that is maintained elsewhere. Pure. */
import type { CountConversations, ListConversations } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { SortedList } from './sorted-list.ts'
import { filterableFields, pairIn } from '../../contract/conversations/metadata-filter.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { Summary } from '../../storage/storage.ts'
import { nextDeadline, waitsSince } from '../../state/open-requests.ts'
import type { State } from '../../state/state.ts'

/** Returns true if the client may see the conversation. */
export type IsVisible = (conversation: Pick<Summary, 'id' | 'userId'>) => boolean

export function summarize({ settings, ...state }: State): Summary {
  const { idempotency } = settings
  const mayWait = state.requests.length > 0 || state.request !== undefined || state.subagents.length > 0
  return {
    id: state.id,
    status: state.status,
    lastSeq: state.lastSeq,
    createdAt: Date.parse(state.createdAt),
    updatedAt: Date.parse(state.updatedAt),
    title: settings.title,
    userId: settings.user_id,
    labels: settings.labels ?? NO_LABELS,
    fields: settings.metadata ? filterableFields(settings.metadata) : NO_FIELDS,
    preview: state.preview,
    waitsSince: mayWait ? waitsSince(state) : undefined,
    deadline: mayWait ? nextDeadline(state) : undefined,
    idempotency: idempotency && { key: idempotency.key, bodyHash: idempotency.bodyHash },
  }
}

/** Shared: most conversations have none, and there may be many. */
const [NO_LABELS, NO_FIELDS] = [[], {}] as const

/** Compares by time of creation, then by id. */
export function compareSummaries(a: Position, b: Position): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

type Position = Pick<Summary, 'id' | 'createdAt'>

/** The summaries of the filtered status, or all. */
type Listed = SortedList<Summary>

/** True if the count of one status already is the answer. */
export function asksForStatusOnly(filter: CountConversations): boolean {
  return Object.entries(filter).every(([name, value]) => name === 'status' || value === undefined)
}

export function countMatching(listed: Listed, filter: CountConversations, isVisible?: IsVisible): number {
  const [first, end] = placesWithin(listed, filter)
  const isWanted = createMatcher(filter, isVisible)
  let count = 0
  // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
  for (let place = first; place < end; place++) if (isWanted(listed.at(place)!)) count++
  return count
}

/** Throws a `Problem` for an invalid `page_id`. */
export function listPage(
  listed: Listed,
  query: ListConversations,
  isVisible?: IsVisible,
): { ids: string[]; nextPageId: string | null } {
  const after = query.page_id === undefined ? undefined : positionOf(query.page_id)
  const isWanted = createMatcher(query, isVisible)
  const [first, end] = placesWithin(listed, query)
  const found: Summary[] = []
  const isFull = () => found.length > query.limit
  const take = (place: number) => {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const summary = listed.at(place)!
    if (isWanted(summary)) found.push(summary)
  }
  if (query.order === 'asc') {
    const from = after ? listed.firstPlace((one) => compareSummaries(one, after) > 0) : 0
    for (let place = Math.max(first, from); place < end && !isFull(); place++) take(place)
  } else {
    const from = after ? listed.firstPlace((one) => compareSummaries(one, after) >= 0) : end
    for (let place = Math.min(end, from) - 1; place >= first && !isFull(); place--) take(place)
  }
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  return {
    ids: page.map(({ id }) => id),
    nextPageId: last && isFull() ? encodePageId([new Date(last.createdAt).toISOString(), last.id]) : null,
  }
}

function positionOf(pageId: string): Position {
  const [time, id] = decodePageId(pageId) ?? []
  const createdAt = Date.parse(time ?? '')
  if (id !== undefined && !Number.isNaN(createdAt)) return { createdAt, id }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued by this server; leave it out to start from the first page.',
  )
}

function placesWithin(listed: Listed, { created_after, created_before }: CountConversations): [number, number] {
  const [after, before] = [timeOf(created_after), timeOf(created_before)]
  return [
    after === undefined ? 0 : listed.firstPlace(({ createdAt }) => createdAt >= after),
    before === undefined ? listed.length : listed.firstPlace(({ createdAt }) => createdAt >= before),
  ]
}

/** Returns the checks that remain after status and time of creation. */
function createMatcher(
  { user_id, q, label, metadata, ...filter }: CountConversations,
  isVisible: IsVisible = () => true,
): (summary: Summary) => boolean {
  const [after = -Infinity, before = Infinity] = [timeOf(filter.updated_after), timeOf(filter.updated_before)]
  const text = q?.toLowerCase()
  const wanted = metadata && [...metadata].map(pairIn)
  return ({ id, userId, labels, fields, title = '', preview, updatedAt }) =>
    isVisible({ id, userId }) &&
    (user_id === undefined || userId === user_id) &&
    (label === undefined || label.values().every((each) => labels.includes(each))) &&
    (wanted === undefined || wanted.every(([name, value]) => Object.hasOwn(fields, name) && fields[name] === value)) &&
    updatedAt >= after &&
    updatedAt < before &&
    (text === undefined || title.toLowerCase().includes(text) || preview.toLowerCase().includes(text))
}

const timeOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))
