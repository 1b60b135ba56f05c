/** A request with a key happens once: which keys are known, and what they say. */
import { describe, expect, test } from 'vitest'
import type { PostedKey } from '../../src/state/idempotency.ts'
import {
  answerOnce,
  answerTo,
  findEarlier,
  isKeyed,
  keptOf,
  KEY_LIFETIME_MS,
  MAX_KEYS,
  seqsOfId,
  withMessageId,
  withPostedKey,
} from '../../src/state/idempotency.ts'
import { runId, START_MS, status, stored, userMessage } from '../conversations/events.ts'

const at = (ms: number) => new Date(START_MS + ms).toISOString()
const posted = (key: string, ms = 0, bodyHash = 'h'): PostedKey => {
  return { key, bodyHash, at: at(ms), answer: { event_id: `${key} ${ms}`, seq: 1 } }
}

describe('an earlier request with the key', () => {
  const known = [posted('a', 0), posted('b', 1), posted('a', 2)]
  const find = (idempotency: Parameters<typeof findEarlier>[1], ms = 3) =>
    findEarlier(known, idempotency, START_MS + ms)

  test('is the newest one, for a day', () => {
    expect(find({ key: 'a', bodyHash: 'h' })).toBe(known[2])
    expect(find({ key: 'b', bodyHash: 'h' })).toBe(known[1])
    expect(find({ key: 'c', bodyHash: 'h' })).toBeUndefined()
    expect(find({ key: 'b', bodyHash: 'h' }, 1 + KEY_LIFETIME_MS - 1)).toBe(known[1])
    expect(find({ key: 'b', bodyHash: 'h' }, 1 + KEY_LIFETIME_MS)).toBeUndefined()
  })

  test('has the same body, also by the hash of a former key of the server', () => {
    expect(find({ key: 'a', bodyHash: 'new', formerHashes: ['g', 'h'] })).toBe(known[2])
    for (const formerHashes of [undefined, [], ['g']]) {
      const request = { key: 'a', bodyHash: 'new', ...(formerHashes && { formerHashes }) }
      expect(() => find(request)).toThrow(expect.objectContaining({ code: 'idempotency_mismatch' }))
      expect(find({ ...request, key: 'c' })).toBeUndefined()
    }
  })

  test('answers the request, which is not made again', () => {
    const answer = (key: string) =>
      answerOnce(
        { key, bodyHash: 'h' },
        { remembered: known, again: ({ answer: { event_id } }) => event_id, make: () => 'made' },
        START_MS + 3,
      )
    expect([answer('a'), answer('c')]).toEqual(['a 2', 'made'])
  })

  test('is kept without the hashes of former keys', () => {
    expect(keptOf({ key: 'a', bodyHash: 'h', formerHashes: ['g'] })).toStrictEqual({ key: 'a', bodyHash: 'h' })
  })
})

describe('the keys of a conversation', () => {
  const message = (fields: object, seq = 5) => {
    const event = stored({ ...userMessage('hello'), ...fields }, seq)
    if (!isKeyed(event)) throw new Error('a message can have a key')
    return event
  }

  test('have that of each event that has one, with its answer', () => {
    const event = message({ idempotency_key: 'k', body_hash: 'h', run_id: runId })
    expect(withPostedKey([], event)).toStrictEqual([
      { key: 'k', bodyHash: 'h', at: event.timestamp, answer: { event_id: event.id, seq: 5, run_id: runId } },
    ])
    expect(answerTo(message({}))).toStrictEqual({ event_id: expect.any(String), seq: 5 })
    const known = [posted('a')]
    for (const fields of [{}, { idempotency_key: 'k' }, { body_hash: 'h' }])
      expect(withPostedKey(known, message(fields))).toBe(known)
    expect(isKeyed(stored(status('running'), 1))).toBe(false)
  })

  test('are those of a day, and at most a thousand', () => {
    const event = message({ idempotency_key: 'k', body_hash: 'h' })
    const now = Date.parse(event.timestamp) - START_MS
    const keys = (known: readonly PostedKey[]) => withPostedKey(known, event).map(({ key }) => key)
    expect(keys([posted('old', now - KEY_LIFETIME_MS), posted('new', now - KEY_LIFETIME_MS + 1)])).toEqual(['new', 'k'])
    const many = Array.from({ length: MAX_KEYS }, (_, each) => posted(String(each), now))
    expect(keys(many)).toEqual([...many.slice(1).map(({ key }) => key), 'k'])
    expect(keys(many.slice(1))).toHaveLength(MAX_KEYS)
  })
})

test('the ids of messages are all known, the newest first, and other ids are not', () => {
  let state = { messageIds: '' }
  for (const [id, seq] of [
    ['one', 12],
    ['two', 3],
    ['one', 345],
    ['', 6],
  ] as const)
    state = withMessageId(state, id, seq)
  const seqsOf = (id: string) => [...seqsOfId(state, id)]
  expect([seqsOf('one'), seqsOf('two'), seqsOf(''), seqsOf('three')]).toEqual([[345, 12], [3], [6], []])
  expect(state.messageIds).toMatch(/^([\w-]{16}:\d+ ){4}$/)
  expect([...seqsOfId({ messageIds: '' }, 'one')]).toEqual([])
})
