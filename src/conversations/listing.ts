/** Finding conversations by what lists may ask for. Pure: summaries in, the ids of one page out. */
import type { CountConversations, ListConversations } from '../contract/conversation.ts'
import type { Status } from '../contract/event.ts'
import { Problem } from '../contract/problem.ts'
import { decodePageId, encodePageId } from '../lib/page-id.ts'
import type { KeptKey } from './idempotency.ts'
import type { State } from './state.ts'

/** What is kept in memory of every conversation; small, because there may be many. */
export type Summary = {
  readonly id: string
  readonly status: Status
  readonly createdAt: string
  readonly updatedAt: string
  readonly title: string | undefined
  readonly userId: string | undefined
  readonly preview: string
  readonly idempotency?: KeptKey
}

export function summarize(state: State): Summary {
  return {
    id: state.id,
    status: state.status,
    createdAt: state.createdAt,
    updatedAt: state.updatedAt,
    title: state.settings.title,
    userId: state.settings.user_id,
    preview: state.preview,
    ...(state.settings.idempotency && { idempotency: state.settings.idempotency }),
  }
}

export function matches(summary: Summary, filter: CountConversations): boolean {
  const { status, user_id, q, created_after, created_before, updated_after, updated_before } = filter
  return (
    (status === undefined || summary.status === status) &&
    (user_id === undefined || summary.userId === user_id) &&
    (q === undefined || `${summary.title ?? ''}\n${summary.preview}`.toLowerCase().includes(q.toLowerCase())) &&
    isWithin(summary.createdAt, created_after, created_before) &&
    isWithin(summary.updatedAt, updated_after, updated_before)
  )
}

/** By time of creation, then id. Throws a `Problem` for a `page_id` that no page gave. */
export function listPage(
  summaries: Iterable<Summary>,
  query: ListConversations,
): { ids: string[]; nextPageId: string | null } {
  const after = query.page_id === undefined ? undefined : decodePageId(query.page_id)
  if (query.page_id !== undefined && !after) {
    throw new Problem(
      'invalid_cursor',
      'page_id is none that this server gave; leave it out to start from the first page.',
    )
  }
  const sign = query.order === 'asc' ? 1 : -1
  const compare = (a: Summary, b: Summary) => sign * compareText(keyOf(a), keyOf(b))
  const rest = [...summaries].filter(
    (summary) => matches(summary, query) && (!after || sign * compareText(keyOf(summary), after.join(' ')) > 0),
  )
  const page = rest.sort(compare).slice(0, query.limit)
  const last = page.at(-1)
  return {
    ids: page.map((summary) => summary.id),
    nextPageId: last && rest.length > page.length ? encodePageId([last.createdAt, last.id]) : null,
  }
}

const keyOf = (summary: Summary) => `${summary.createdAt} ${summary.id}`

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function isWithin(time: string, after: string | undefined, before: string | undefined): boolean {
  const at = Date.parse(time)
  return (after === undefined || at >= Date.parse(after)) && (before === undefined || at < Date.parse(before))
}
