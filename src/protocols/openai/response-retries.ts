/** Finds the turn that a request of the Responses API has begun before. */
import type { FastifyRequest } from 'fastify'
import type { Conversation } from '../../conversations/conversation.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { BodyHash } from '../../security/body-hash.ts'
import type { Idempotency, PostedKey } from '../../state/idempotency.ts'
import type { RetryHeaders } from './earlier-post.ts'
import { earlierPost, isWithdrawn, retryHeadersOf } from './earlier-post.ts'
import { CREATION_PREFIX } from './response-id.ts'

export type ResponseRetry = RetryHeaders & BodyHash

export const retryOf = (request: FastifyRequest): ResponseRetry => ({
  ...retryHeadersOf(request),
  ...request.server.hashBody('response request', request.body),
})

/** Keys of clients have no space. */
const FORM = /^response \S+(?: (\S+))?$/

/** Returns the mark for the message of a request; each is another one. */
export function responseMark({ key, bodyHash, formerHashes }: ResponseRetry): Idempotency {
  return { key: ['response', uuid7(), ...(key === undefined ? [] : [key])].join(' '), bodyHash, formerHashes }
}

/**
 * Returns the mark of each of `count` items that a request adds, by its index: that of the request which it repeats. If that one
 * has failed, which withdraws its items, they are new ones.
 */
export function itemMarks(
  conversation: Conversation,
  count: number,
  { key, isRepeated, bodyHash, formerHashes }: ResponseRetry,
): (index: number) => Promise<Idempotency> {
  const { postedKeys } = conversation.state
  const hashes = [bodyHash, ...formerHashes]
  const isEarlier = (postedKey: PostedKey) =>
    postedKey.key.startsWith(FIRST_ITEM) && hashes.includes(postedKey.bodyHash)
  const earlierKey = key === undefined && isRepeated ? postedKeys.findLast(isEarlier)?.key : undefined
  const name = key ?? earlierKey?.slice(FIRST_ITEM.length).split(' ')[0] ?? uuid7()
  const newestOf = (index: number) => postedKeys.findLast((each) => `${each.key} `.startsWith(`item ${index} ${name} `))
  const isWhole = newestOf(count - 1) !== undefined
  return async (index) => {
    const newest = newestOf(index)
    const hasFailed = newest && !isWhole && (await isWithdrawn(conversation, newest.answer.seq))
    const first = `item ${index} ${name}`
    return { key: hasFailed ? `${first} ${uuid7()}` : (newest?.key ?? first), bodyHash, formerHashes }
  }
}

const FIRST_ITEM = 'item 0 '

/** Returns the key for the conversation that a request creates, or the fork. */
export const creationOf = ({ key, bodyHash, formerHashes }: ResponseRetry): Idempotency | undefined =>
  key === undefined ? undefined : { key: CREATION_PREFIX + key, bodyHash, formerHashes }

/** Returns the seq of its message; undefined if the request is a new one. Throws a `Problem` for a key of another request. */
export async function earlierResponse(conversation: Conversation, retry: ResponseRetry): Promise<number | undefined> {
  const { key, isRepeated, bodyHash, formerHashes } = retry
  if (key === undefined && !isRepeated) return undefined
  const hashes = [bodyHash, ...formerHashes]
  // The body names the response that it continues, or the conversation.
  const isMeant = ({ key: mark, bodyHash: hash }: PostedKey) => {
    const form = FORM.exec(mark)
    return form !== null && (key === undefined ? hashes.includes(hash) : form[1] === key)
  }
  return await earlierPost(conversation, isMeant, retry)
}
