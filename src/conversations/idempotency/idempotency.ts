/**
 * The one mechanism for `Idempotency-Key`: within a day, the same key and body get the earlier answer, and the same key
 * with another body is refused. Pure; its users decide who remembers a key, and what keeps two with the same key apart:
 *
 * - Messages, tasks, client events: the log and the state folded from it; the conversation's inbox (`posted-keys.ts`).
 * - Changes of files: the log alone, as one request makes many events; `in-flight.ts`, as a body can take long to come.
 * - Commands: their records on disk, as they change after the request; the command itself while it runs, which the
 *   refusal names (`exec/client-commands.ts`).
 * - Conversations and callbacks: a memory that outlives what was made, filled from the disk; `in-flight.ts`.
 */
import type { PostedMessage } from '../../contract/run.ts'
import type { Event, EventOf, EventType } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'

/** What is kept of a request that came with a key. */
export type KeptKey = { readonly key: string; readonly bodyHash: string }

/** The request itself; `formerHashes`: what is kept of the same body from before the server's key was changed. */
export type Idempotency = KeptKey & { readonly formerHashes?: readonly string[] }

/** A key whose request is not known as a whole yet. */
export type Keyed = { readonly key: string; readonly with: (body: unknown) => Idempotency }

export const keptOf = ({ key, bodyHash }: Idempotency): KeptKey => ({ key, bodyHash })

export type PostedKey = KeptKey & { readonly at: string; readonly answer: PostedMessage }

/** How long a key is remembered, milliseconds. */
export const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** Kept at hand; the others of the day are found in the log. */
export const MAX_KEYS = 1000

/** What a key made before, and when: RFC 3339. */
type Remembered = KeptKey & { readonly at: string }

type Steps<E, T> = {
  /** At least all of this key, oldest first. Nothing may come between reading it and this call. */
  readonly remembered: readonly E[]
  readonly again: (earlier: E) => T
  readonly make: () => T
}

/** Makes it, or answers with what the same request made before. Throws a `Problem` when the key came with another body. */
export function answerOnce<E extends Remembered, T>(
  idempotency: Idempotency,
  { remembered, again, make }: Steps<E, T>,
  now = Date.now(),
): T {
  const earlier = findEarlier(remembered, idempotency, now)
  return earlier ? again(earlier) : make()
}

/** What the same request made before. Throws a `Problem` when the key came with another body. */
export function findEarlier<T extends Remembered>(
  known: readonly T[],
  { key, bodyHash, formerHashes = [] }: Idempotency,
  now: number,
): T | undefined {
  const earlier = known.findLast((posted) => posted.key === key && now - Date.parse(posted.at) < KEY_LIFETIME_MS)
  if (earlier && earlier.bodyHash !== bodyHash && !formerHashes.includes(earlier.bodyHash)) {
    throw new Problem(
      'idempotency_mismatch',
      'This Idempotency-Key came with another body before; use a new key for a new request.',
    )
  }
  return earlier
}

/** What is posted into a conversation, and may come with a key. */
export const KEYED_TYPES = new Set(['UserMessage', 'TaskUpdate', 'ClientEvent'] as const)
export type KeyedEvent = EventOf<typeof KEYED_TYPES extends Set<infer T extends EventType> ? T : never>

export const isKeyed = (event: Event): event is KeyedEvent => (KEYED_TYPES as ReadonlySet<string>).has(event.type)

/** The keys after one more event; those of more than a day ago are forgotten. */
export function withPostedKey(known: readonly PostedKey[], event: KeyedEvent): readonly PostedKey[] {
  if (event.idempotency_key === undefined || event.body_hash === undefined) return known
  const oldest = Date.parse(event.timestamp) - KEY_LIFETIME_MS
  const posted = { key: event.idempotency_key, bodyHash: event.body_hash, at: event.timestamp, answer: answerTo(event) }
  return [...known.filter((one) => Date.parse(one.at) > oldest), posted].slice(-MAX_KEYS)
}

export function answerTo(event: KeyedEvent): PostedMessage {
  const run = event.type === 'UserMessage' && event.run_id !== undefined ? { run_id: event.run_id } : {}
  return { event_id: event.id, seq: event.seq, ...run }
}
