/**
 * The one mechanism for `Idempotency-Key`: within a day, the same key and body get the earlier response, and the same
 * key with another body is refused. Pure; each user decides where keys are stored and how concurrent requests with the
 * same key are separated:
 *
 * - Messages, tasks, client events: the log and the state folded from it; the conversation's inbox (`posted-keys.ts`).
 * - Changes of files: the log alone, because one request makes many events; `in-flight.ts`, because a body can arrive
 *   slowly.
 * - Commands: their records on disk, because they change after the request; the running command itself, which the
 *   refusal names (`exec/client-commands.ts`).
 * - Conversations and callbacks: a memory that outlives them, filled from the disk; `in-flight.ts`.
 */
import { createHash } from 'node:crypto'
import type { PostedMessage } from '../contract/run.ts'
import type { Event, EventOf, EventType } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'

/** The stored part of a request's key. */
export type KeptKey = { readonly key: string; readonly bodyHash: string }

/** The key of a request; `formerHashes` are the body's hashes under former server keys. */
export type Idempotency = KeptKey & { readonly formerHashes?: readonly string[] }

/** A key whose request body is not completely known yet. */
export type IdempotencyDraft = { readonly key: string; readonly with: (body: unknown) => Idempotency }

export const keptOf = ({ key, bodyHash }: Idempotency): KeptKey => ({ key, bodyHash })

/** The id that a client gave a message, and the hash of what identifies the message. */
export type ClientMessage = {
  readonly id: string
  readonly bodyHash: string
  readonly formerHashes: readonly string[]
}

/** What a message is stored with, so that it is stored once. */
export type StoredOnce = {
  readonly idempotency?: Idempotency | undefined
  readonly clientMessage?: ClientMessage | undefined
}

export type PostedKey = KeptKey & { readonly at: string; readonly answer: PostedMessage }

/** How long a key is remembered, in milliseconds. */
export const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** Keys kept in memory; the others of the day are looked up in the log. */
export const MAX_KEYS = 1000

/** The result of an earlier request with its time, RFC 3339. */
type RememberedResult = KeptKey & { readonly at: string }

type Steps<E, T> = {
  /**
   * The list has at least all entries of this key, oldest first. No other work may run between reading them and this
   * call.
   */
  readonly remembered: readonly E[]
  readonly again: (earlier: E) => T
  readonly make: () => T
}

/**
 * Runs the request, or returns the result of the earlier identical one. Throws a `Problem` if the key was used with
 * another body.
 */
export function answerOnce<E extends RememberedResult, T>(
  idempotency: Idempotency,
  { remembered, again, make }: Steps<E, T>,
  now = Date.now(),
): T {
  const earlier = findEarlier(remembered, idempotency, now)
  return earlier ? again(earlier) : make()
}

/** Returns the result of the earlier identical request. Throws a `Problem` if the key was used with another body. */
export function findEarlier<T extends RememberedResult>(
  knownKeys: readonly T[],
  { key, bodyHash, formerHashes = [] }: Idempotency,
  now: number,
): T | undefined {
  const earlier = knownKeys.findLast(
    (postedKey) => postedKey.key === key && now - Date.parse(postedKey.at) < KEY_LIFETIME_MS,
  )
  if (earlier && earlier.bodyHash !== bodyHash && !formerHashes.includes(earlier.bodyHash)) {
    throw new Problem(
      'idempotency_mismatch',
      'This Idempotency-Key was used with another body before; use a new key for a new request.',
    )
  }
  return earlier
}

/** The events of requests that may have a key. */
export const KEYED_TYPES = new Set(['UserMessage', 'TaskUpdate', 'ClientEvent', 'Rewound', 'FilesRestored'] as const)
export type KeyedEvent = EventOf<typeof KEYED_TYPES extends Set<infer T extends EventType> ? T : never>

export const isKeyed = (event: Event): event is KeyedEvent => (KEYED_TYPES as ReadonlySet<string>).has(event.type)

/** Returns the keys after one more event, without those older than a day. */
export function withPostedKey(knownKeys: readonly PostedKey[], event: KeyedEvent): readonly PostedKey[] {
  if (event.idempotency_key === undefined || event.body_hash === undefined) return knownKeys
  const oldest = Date.parse(event.timestamp) - KEY_LIFETIME_MS
  const postedKey = {
    key: event.idempotency_key,
    bodyHash: event.body_hash,
    at: event.timestamp,
    answer: answerTo(event),
  }
  return [...knownKeys.filter((one) => Date.parse(one.at) > oldest), postedKey].slice(-MAX_KEYS)
}

export function answerTo(event: KeyedEvent): PostedMessage {
  const run = event.type === 'UserMessage' && event.run_id !== undefined ? { run_id: event.run_id } : {}
  return { event_id: event.id, seq: event.seq, ...run }
}

type MessageIds = { readonly messageIds: string }

/**
 * All ids that clients have given messages are known for as long as the conversation exists, so that none is ever stored twice: an
 * entry is 16 characters of the id's hash, and the seq. It is one text, because adding an entry to a text copies nothing.
 */
export const withMessageId = ({ messageIds }: MessageIds, id: string, seq: number): MessageIds => ({
  messageIds: `${messageIds}${entryOf(id)}${seq} `,
})

/** Returns the seqs of the messages that may have the id, the newest first: other ids can have the same hash. */
export function* seqsOfId({ messageIds }: MessageIds, id: string): Generator<number, void, void> {
  const entry = entryOf(id)
  for (let at = messageIds.lastIndexOf(entry); at >= 0; at = at > 0 ? messageIds.lastIndexOf(entry, at - 1) : -1)
    yield Number.parseInt(messageIds.slice(at + entry.length), 10)
}

/** Hashes have no colon, and are as long as each other. */
const entryOf = (id: string): string => `${createHash('sha256').update(id).digest('base64url').slice(0, 16)}:`
