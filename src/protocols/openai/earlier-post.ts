/** Finds the message that a request has posted before: clients of OpenAI repeat requests whose answer was lost. */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { KeyHeader } from '../../http/request/idempotency-key.ts'
import type { BodyHash } from '../../security/body-hash.ts'
import { KEY_LIFETIME_MS } from '../../state/idempotency.ts'
import type { PostedKey } from '../../state/idempotency.ts'
import { parseField } from '../shared/fields.ts'

/** `key`: the header `Idempotency-Key`. `isRepeated`: the client says that it has sent the request before. */
export type RetryHeaders = { readonly key: string | undefined; readonly isRepeated: boolean }

/** Throws a `Problem`. */
export function retryHeadersOf({ headers }: FastifyRequest): RetryHeaders {
  const key = parseField(KeyHeader, { 'idempotency-key': headers['idempotency-key'] })['idempotency-key']
  return { key, isRepeated: Number(headers['x-stainless-retry-count'] ?? 0) > 0 }
}

/**
 * Returns the seq of the newest message of the last day whose key `isMeant`; undefined if there is none, or it was withdrawn.
 * Throws a `Problem` if its request had another body.
 */
export async function earlierPost(
  conversation: Conversation,
  isMeant: (postedKey: PostedKey) => boolean,
  { bodyHash, formerHashes }: BodyHash,
): Promise<number | undefined> {
  const postedKey = conversation.state.postedKeys.findLast(
    (entry) => isMeant(entry) && Date.now() - Date.parse(entry.at) < KEY_LIFETIME_MS,
  )
  if (!postedKey || (await isWithdrawn(conversation, postedKey.answer.seq))) return undefined
  if ([bodyHash, ...formerHashes].includes(postedKey.bodyHash)) return postedKey.answer.seq
  throw new Problem('idempotency_mismatch', 'This Idempotency-Key was used with another body before; use a new key.')
}

const AFTER_MESSAGE: ReadonlySet<string> = new Set(['MessageWithdrawn', 'AssistantMessage', 'Result'])

/** A message that an answer follows was read: it cannot be withdrawn. */
export async function isWithdrawn({ log }: Conversation, seq: number): Promise<boolean> {
  for await (const { events } of readPages(log, { afterSeq: seq, types: AFTER_MESSAGE, limit: 16 }))
    for (const { event } of events) {
      if (event.type !== 'MessageWithdrawn') return false
      if (event.message_seq === seq) return true
    }
  return false
}
