/** The outcomes of the last deliveries of one callback. Bounded; in memory, except for skipped deliveries. */
import type { Delivery, DeliveryPage, ListDeliveries } from '../contract/callback.ts'
import { Problem } from '../contract/problem.ts'
import { decodePageId, encodePageId } from '../lib/page-id.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'

/** Maximum of skipped deliveries, and again of all others. */
const MAX_KEPT = 50

/** An attempt and the resulting state of the delivery. */
export type NotedAttempt = Pick<Delivery, 'event_id' | 'seq' | 'type' | 'status' | 'duration_ms'> & {
  readonly at: string
  readonly response_status?: number
  readonly error?: string
  readonly next_attempt_at?: string
}

export type DeliveryHistory = {
  readonly note: (attempt: NotedAttempt) => void
  /** Attempts are suspended: pending deliveries have no next attempt. */
  readonly rest: () => void
  readonly nextAttemptAt: () => string | undefined
  /** Returns the deliveries to store on disk. */
  readonly failed: () => Delivery[]
  /** Newest first. Throws a `Problem` for an invalid `page_id`. */
  readonly page: (query: ListDeliveries) => DeliveryPage
}

export function createDeliveryHistory(failedDeliveries: readonly Delivery[]): DeliveryHistory {
  /** Oldest first. */
  let items: readonly Delivery[] = failedDeliveries

  const isPending = ({ status }: Delivery) => status === 'pending'
  return {
    note({ at, ...attempt }) {
      const before = items.findLast((one) => isPending(one) && one.event_id === attempt.event_id)
      const delivery: Delivery = {
        ...attempt,
        id: before?.id ?? uuid7(),
        attempts: (before?.attempts ?? 0) + 1,
        first_attempt_at: before?.first_attempt_at ?? at,
        last_attempt_at: at,
      }
      items = before ? items.map((one) => (one === before ? delivery : one)) : withinBounds([...items, delivery])
    },
    rest() {
      items = items.map((one) => withoutUndefined({ ...one, next_attempt_at: undefined }))
    },
    nextAttemptAt: () => items.findLast(isPending)?.next_attempt_at,
    failed: () => items.filter(isFailed),
    page({ status, limit, page_id }) {
      const before = page_id === undefined ? undefined : positionOf(page_id)
      const rest = items
        .filter((one) => (status === undefined || one.status === status) && (before === undefined || one.id < before))
        .toReversed()
      const page = rest.slice(0, limit)
      const last = page.at(-1)
      const isMore = last !== undefined && rest.length > page.length
      return { items: page, next_page_id: isMore ? encodePageId([last.first_attempt_at, last.id]) : null }
    },
  }
}

const isFailed = ({ status }: Delivery) => status === 'failed'

function withinBounds(items: readonly Delivery[]): readonly Delivery[] {
  const failedDeliveries = items.filter(isFailed)
  const others = items.filter((one) => !isFailed(one))
  const droppedDeliveries = new Set([...failedDeliveries.slice(0, -MAX_KEPT), ...others.slice(0, -MAX_KEPT)])
  return droppedDeliveries.size ? items.filter((one) => !droppedDeliveries.has(one)) : items
}

function positionOf(pageId: string): string {
  const position = decodePageId(pageId)
  if (!position)
    throw new Problem('invalid_cursor', 'page_id was not issued by this server; leave it out to start from the newest.')
  return position[1]
}
