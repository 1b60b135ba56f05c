/** Whether a message came before with the same `Idempotency-Key`: in the state's short memory, or further back in the log. */
import type { EventLog } from '../events/event-log.ts'
import type { Idempotency, PostedKey } from './idempotency.ts'
import { KEY_LIFETIME_MS, MAX_KEYS, findEarlier, withPostedKey } from './idempotency.ts'

const TYPES = new Set(['UserMessage'])
const PAGE = 1000

/** Throws a `Problem` when the key came with another body. */
export async function findPosted(
  log: EventLog,
  remembered: readonly PostedKey[],
  idempotency: Idempotency,
  now: number,
): Promise<PostedKey | undefined> {
  const earlier = findEarlier(remembered, idempotency, now)
  // Only what found no place is looked for in the log.
  if (earlier || remembered.length < MAX_KEYS) return earlier
  for (let beforeSeq: number | undefined = remembered[0]!.answer.seq; beforeSeq !== undefined;) {
    const page = await log.read({ types: TYPES, order: 'desc', beforeSeq, limit: PAGE })
    for (const { event } of page.events) {
      if (event.type !== 'UserMessage') continue
      if (now - Date.parse(event.timestamp) >= KEY_LIFETIME_MS) return undefined
      const found = findEarlier(withPostedKey([], event), idempotency, now)
      if (found) return found
    }
    beforeSeq = page.scannedTo
  }
  return undefined
}
