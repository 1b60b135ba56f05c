/** What a request with an `Idempotency-Key` made before, where the key is in the events themselves: found in the log of the last day. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { Idempotency } from './idempotency.ts'
import { KEY_LIFETIME_MS, findEarlier } from './idempotency.ts'

type KeyedEvent = EventOf<'FileUpdate'>

const PAGE = 1000

/** In the order they were stored; none when there was no such request. */
export async function findKeyedEvents<E extends KeyedEvent>(
  log: EventLog,
  type: E['type'],
  key: string,
  now: number,
): Promise<readonly E[]> {
  const isOf = (event: Event): event is E => event.type === type
  const since = new Date(now - KEY_LIFETIME_MS).toISOString()
  const found: E[] = []
  for (let afterSeq: number | undefined = 0; afterSeq !== undefined;) {
    const page = await log.read({ types: new Set([type]), since, afterSeq, limit: PAGE })
    const events = page.events.map((stored) => stored.event).filter(isOf)
    found.push(...events.filter((event) => event.idempotency_key === key))
    afterSeq = page.scannedTo
  }
  return found
}

/** Throws a `Problem` when what came with the key before had another body. */
export function refuseOther(earlier: readonly KeyedEvent[], idempotency: Idempotency, now: number): void {
  const kept = earlier.map(({ timestamp, body_hash = '' }) => ({
    key: idempotency.key,
    bodyHash: body_hash,
    at: timestamp,
  }))
  findEarlier(kept, idempotency, now)
}
