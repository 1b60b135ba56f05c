/** Whether something was posted before with the same `Idempotency-Key`: in the state's short memory, or further back in the log. */
import type { EventLog } from '../../events/event-log.ts'
import type { Idempotency, PostedKey } from './idempotency.ts'
import { KEYED_TYPES, KEY_LIFETIME_MS, MAX_KEYS, findEarlier, isKeyed, withPostedKey } from './idempotency.ts'
import { refuseSecretsIn } from '../config/refuse-secrets.ts'

const PAGE = 1000

/** Throws a `Problem` when the key came with another body, or is new and holds the value of a secret. */
export async function findPosted(
  { log, redact }: { readonly log: EventLog; readonly redact: (text: string) => string },
  remembered: readonly PostedKey[],
  idempotency: Idempotency | undefined,
): Promise<PostedKey | undefined> {
  if (!idempotency) return undefined
  const earlier = await find(log, remembered, idempotency, Date.now())
  if (!earlier) refuseSecretsIn({ 'Idempotency-Key': idempotency.key }, redact)
  return earlier
}

async function find(
  log: EventLog,
  remembered: readonly PostedKey[],
  idempotency: Idempotency,
  now: number,
): Promise<PostedKey | undefined> {
  const earlier = findEarlier(remembered, idempotency, now)
  // Only what found no place is looked for in the log.
  if (earlier || remembered.length < MAX_KEYS) return earlier
  for (let beforeSeq: number | undefined = remembered[0]!.answer.seq; beforeSeq !== undefined;) {
    const page = await log.read({ types: KEYED_TYPES, order: 'desc', beforeSeq, limit: PAGE })
    for (const { event } of page.events) {
      if (!isKeyed(event)) continue
      if (now - Date.parse(event.timestamp) >= KEY_LIFETIME_MS) return undefined
      const found = findEarlier(withPostedKey([], event), idempotency, now)
      if (found) return found
    }
    beforeSeq = page.scannedTo
  }
  return undefined
}
