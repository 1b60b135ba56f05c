/**
 * The keys of messages, tasks and client events: the newest are in the state, which is folded from the log, the others
 * in the log itself.
 */
import type { EventLog } from '../events/event-log.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import type { Idempotency, KeyedEvent, PostedKey } from '../state/idempotency.ts'
import { KEYED_TYPES, MAX_KEYS, answerOnce, isKeyed, withPostedKey } from '../state/idempotency.ts'
import { eventsWithKey } from './keyed-events.ts'

type Posting<T> = {
  readonly log: EventLog
  readonly redact: (text: string) => string
  /** The keys in the state. */
  readonly remembered: readonly PostedKey[]
  readonly again: (earlier: PostedKey) => Promise<T>
  readonly make: () => Promise<T>
}

/**
 * Calls `answerOnce` for a posted event, or `make` without a key. Call it in turn only, which separates two requests with the
 * same key. Also throws a `Problem` if a new key contains a secret value.
 */
export async function postOnce<T>(
  idempotency: Idempotency | undefined,
  { log, redact, remembered, again, make }: Posting<T>,
): Promise<T> {
  if (!idempotency) return await make()
  return await answerOnce(idempotency, {
    remembered: await find(log, remembered, idempotency.key),
    again,
    make: () => {
      refuseSecretsIn({ 'Idempotency-Key': idempotency.key }, redact)
      return make()
    },
  })
}

async function find(log: EventLog, rememberedKeys: readonly PostedKey[], key: string): Promise<readonly PostedKey[]> {
  // Search the log only for keys that no longer fit in the state.
  if (rememberedKeys.length < MAX_KEYS || rememberedKeys.some((postedKey) => postedKey.key === key))
    return rememberedKeys
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there are `MAX_KEYS` of them
  const range = { types: KEYED_TYPES, order: 'desc', beforeSeq: rememberedKeys[0]!.answer.seq } as const
  for await (const event of eventsWithKey<KeyedEvent>(log, key, isKeyed, range)) return withPostedKey([], event)
  return []
}
