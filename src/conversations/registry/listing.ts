/** Filters and pages of conversation lists, over an order that is maintained elsewhere. Pure. */
import type { ConversationCount, CountConversations, ListConversations } from '../../contract/conversation.ts'
import type { ValueCounts } from '../../contract/values/page.ts'
import { MAX_COUNTED_VALUES } from '../../contract/values/page.ts'
import { Problem } from '../../contract/problem.ts'
import { SortedList } from './sorted-list.ts'
import { filterableFields, pairIn } from '../../contract/conversations/metadata-filter.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { OpenRequest } from '../../contract/request.ts'
import type { Summary } from '../../storage/storage.ts'
import { nextDeadline, restingRequests, waitsSince } from '../../state/open-requests.ts'
import type { State } from '../../state/state.ts'

/** Returns true if the client may see the conversation. */
export type IsVisible = (conversation: Pick<Summary, 'id' | 'userId' | 'profile'>) => boolean

/** `requestsOf`: which of its requests count. */
export function summarize({ settings, ...state }: State, requestsOf: RequestsOf = restingRequests): Summary {
  const { idempotency } = settings
  const mayWait = state.requests.length > 0 || state.request !== undefined || state.subagents.length > 0
  const waiting = mayWait ? requestsOf(state) : NO_REQUESTS
  return {
    id: state.id,
    status: state.status,
    lastSeq: state.lastSeq,
    createdAt: Date.parse(state.createdAt),
    updatedAt: Date.parse(state.updatedAt),
    title: settings.title,
    userId: settings.user_id,
    profile: settings.profile,
    labels: settings.labels ?? NO_LABELS,
    fields: settings.metadata ? filterableFields(settings.metadata) : NO_FIELDS,
    preview: state.preview,
    lastWords: state.lastWords,
    model: settings.llm_config.model,
    costUsd: state.costUsd,
    isArchived: settings.archived ?? false,
    waiting: waiting.length,
    waitsSince: mayWait ? waitsSince(waiting) : undefined,
    deadline: mayWait ? nextDeadline(state) : undefined,
    idempotency: idempotency && { key: idempotency.key, bodyHash: idempotency.bodyHash },
  }
}

/** Shared: most conversations have none, and there may be many. */
const [NO_LABELS, NO_FIELDS, NO_REQUESTS] = [[], {}, []] as const

type RequestsOf = (state: Omit<State, 'settings'>) => readonly OpenRequest[]

/** Compares by time of creation, then by id. */
export function compareSummaries(a: Position, b: Position): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

type Position = Pick<Summary, 'id' | 'createdAt'>

/** The summaries of one status, or all, in the order of their creation. */
type ListedSummaries = SortedList<Summary>

/** True if every conversation matches. */
export const matchesAll = (filter: CountConversations): boolean =>
  Object.values(filter).every((value) => value === undefined)

export function countMatching(summaries: ListedSummaries, filter: CountConversations, isVisible?: IsVisible): number {
  const [first, end] = placesWithin(summaries, filter)
  const isWanted = createMatcher(filter, isVisible)
  let count = 0
  // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
  for (let place = first; place < end; place++) if (isWanted(summaries.at(place)!)) count++
  return count
}

type ValuesOf = (summary: Summary) => readonly (string | undefined)[]

const VALUES = {
  label: ({ labels }) => labels,
  model: ({ model }) => [model],
  user_id: ({ userId }) => [userId],
} as const satisfies Record<string, ValuesOf>

/** Counts the matching conversations of each value of the fields in `by`. */
export function countValues(
  summaries: ListedSummaries,
  { by, ...filter }: CountConversations,
  isVisible?: IsVisible,
): Pick<ConversationCount, 'by_label' | 'by_model' | 'by_user_id'> {
  const wantedFields = (['label', 'model', 'user_id'] as const).filter((field) => by?.has(field))
  if (wantedFields.length === 0) return {}
  const counts = wantedFields.map((field) => ({ field, byValue: new Map<string, number>() }))
  const isWanted = createMatcher(filter, isVisible)
  const [first, end] = placesWithin(summaries, filter)
  for (let place = first; place < end; place++) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const summary = summaries.at(place)!
    if (!isWanted(summary)) continue
    for (const { field, byValue } of counts)
      for (const value of VALUES[field](summary))
        if (value !== undefined) byValue.set(value, (byValue.get(value) ?? 0) + 1)
  }
  return Object.fromEntries(counts.map(({ field, byValue }) => [`by_${field}`, mostFrequent(byValue)]))
}

function mostFrequent(byValue: ReadonlyMap<string, number>): ValueCounts {
  return [...byValue]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, MAX_COUNTED_VALUES)
}

/** Throws a `Problem` for an invalid `page_id`. */
export function listPage(
  summaries: ListedSummaries,
  query: ListConversations,
  isVisible?: IsVisible,
): { ids: string[]; nextPageId: string | null } {
  const isByUpdate = query.sort === 'updated_at'
  const after = query.page_id === undefined ? undefined : positionOf(query.page_id, isByUpdate)
  const foundSummaries = (isByUpdate ? firstByUpdate : firstByCreation)(summaries, query, { after, isVisible })
  const page = foundSummaries.slice(0, query.limit)
  const last = page.at(-1)
  return {
    ids: page.map(({ id }) => id),
    nextPageId: last && foundSummaries.length > query.limit ? pageIdAfter(last, isByUpdate) : null,
  }
}

type WantedPage = { readonly after: Position | undefined; readonly isVisible: IsVisible | undefined }

/** Returns the summaries that follow `after` by time of creation: at most one more than the limit. */
function firstByCreation(
  summaries: ListedSummaries,
  query: ListConversations,
  { after, isVisible }: WantedPage,
): Summary[] {
  const isWanted = createMatcher(query, isVisible)
  const [first, end] = placesWithin(summaries, query)
  const foundSummaries: Summary[] = []
  const isFull = () => foundSummaries.length > query.limit
  const take = (place: number) => {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const summary = summaries.at(place)!
    if (isWanted(summary)) foundSummaries.push(summary)
  }
  if (query.order === 'asc') {
    const from = after ? summaries.firstPlace((one) => compareSummaries(one, after) > 0) : 0
    for (let place = Math.max(first, from); place < end && !isFull(); place++) take(place)
  } else {
    const from = after ? summaries.firstPlace((one) => compareSummaries(one, after) >= 0) : end
    for (let place = Math.min(end, from) - 1; place >= first && !isFull(); place--) take(place)
  }
  return foundSummaries
}

/** Returns the same by time of change. Each event changes that time, so no sorted list is kept: this reads all summaries. */
function firstByUpdate(
  summaries: ListedSummaries,
  query: ListConversations,
  { after, isVisible }: WantedPage,
): Summary[] {
  const isWanted = createMatcher(query, isVisible)
  const direction = query.order === 'asc' ? 1 : -1
  const compare = (a: Position, b: Position) => direction * compareSummaries(a, b)
  const foundPositions = new SortedList<Position & { readonly summary: Summary }>(compare)
  const [first, end] = placesWithin(summaries, query)
  for (let place = first; place < end; place++) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const summary = summaries.at(place)!
    const position = { id: summary.id, createdAt: summary.updatedAt, summary }
    if ((after && compare(position, after) <= 0) || !isWanted(summary)) continue
    const last = foundPositions.at(query.limit)
    if (last && compare(position, last) > 0) continue
    if (last) foundPositions.delete(last)
    foundPositions.add(position)
  }
  return Array.from({ length: foundPositions.length }, (_, place) => foundPositions.at(place)).flatMap(
    (one) => one?.summary ?? [],
  )
}

/** Page ids of that order have this prefix before the time. */
const BY_UPDATE = 'updated_at '

const pageIdAfter = ({ id, createdAt, updatedAt }: Summary, isByUpdate: boolean): string =>
  encodePageId([isByUpdate ? BY_UPDATE + new Date(updatedAt).toISOString() : new Date(createdAt).toISOString(), id])

function positionOf(pageId: string, isByUpdate: boolean): Position {
  const [key = '', id] = decodePageId(pageId) ?? []
  const createdAt = Date.parse(key.replace(BY_UPDATE, ''))
  if (id !== undefined && !Number.isNaN(createdAt) && key.startsWith(BY_UPDATE) === isByUpdate) return { createdAt, id }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued by this server for this sort; leave it out to start from the first page.',
  )
}

function placesWithin(
  summaries: ListedSummaries,
  { created_after, created_before }: CountConversations,
): [number, number] {
  const [after, before] = [timeOf(created_after), timeOf(created_before)]
  return [
    after === undefined ? 0 : summaries.firstPlace(({ createdAt }) => createdAt >= after),
    before === undefined ? summaries.length : summaries.firstPlace(({ createdAt }) => createdAt >= before),
  ]
}

/** Returns the checks that remain after the time of creation. */
function createMatcher(
  { status: statuses, user_id, q, label, metadata, model: ofModel, archived, ...filter }: CountConversations,
  isVisible: IsVisible = () => true,
): (summary: Summary) => boolean {
  const [after = -Infinity, before = Infinity] = [timeOf(filter.updated_after), timeOf(filter.updated_before)]
  const text = q?.toLowerCase()
  const wantedPairs = metadata && [...metadata].map(pairIn)
  return ({ id, status, userId, profile, labels, fields, model, isArchived, title = '', preview, updatedAt }) =>
    isVisible({ id, userId, profile }) &&
    (statuses === undefined || statuses.has(status)) &&
    (ofModel === undefined || model === ofModel) &&
    (archived === undefined || isArchived === archived) &&
    (user_id === undefined || userId === user_id) &&
    (label === undefined || label.values().every((each) => labels.includes(each))) &&
    (wantedPairs === undefined ||
      wantedPairs.every(([name, value]) => Object.hasOwn(fields, name) && fields[name] === value)) &&
    updatedAt >= after &&
    updatedAt < before &&
    (text === undefined || title.toLowerCase().includes(text) || preview.toLowerCase().includes(text))
}

const timeOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))
