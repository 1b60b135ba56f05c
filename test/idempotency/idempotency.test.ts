import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { PostedMessage } from '../../src/contract/run.ts'
import { ListConversations } from '../../src/contract/conversation.ts'
import type { PostedKey } from '../../src/state/idempotency.ts'
import { KEY_LIFETIME_MS, MAX_KEYS, answerOnce, findEarlier, withPostedKey } from '../../src/state/idempotency.ts'
import { CreatedKeys } from '../../src/idempotency/created-keys.ts'
import { setHttp } from '../http/fixtures.ts'
import type { HttpBench } from '../http/fixtures.ts'
import { START_MS, stored, userMessage } from '../conversations/events.ts'
import { MODEL_KEY, eventsOf, only, setBench, userText } from '../conversations/fixtures.ts'

const DAY = KEY_LIFETIME_MS
const at = (ms: number) => new Date(START_MS + ms).toISOString()
const answer: PostedMessage = { event_id: '018f0000-0000-7000-8000-00000000000d', seq: 1 }

describe('a key', () => {
  const known = [{ key: 'k', bodyHash: 'one', at: at(0) }]

  test('with the same body finds the earlier result, for a day', () => {
    const same = { key: 'k', bodyHash: 'one' }
    expect(findEarlier(known, same, START_MS + DAY - 1)).toBe(known[0])
    expect(findEarlier(known, same, START_MS + DAY)).toBeUndefined()
    expect(findEarlier(known, same, START_MS - DAY), 'the clock was set back').toBe(known[0])
  })

  test('with another body is refused for a day, and is a new key after that', () => {
    const other = { key: 'k', bodyHash: 'two' }
    expect(() => findEarlier(known, other, START_MS)).toThrow(expect.objectContaining({ code: 'idempotency_mismatch' }))
    expect(findEarlier(known, other, START_MS + DAY)).toBeUndefined()
  })

  test('is case-sensitive and matches only itself', () => {
    expect(findEarlier(known, { key: 'K', bodyHash: 'two' }, START_MS)).toBeUndefined()
  })

  test('with the same body finds it even after the server has changed its key', () => {
    const same = { key: 'k', bodyHash: 'one under another key', formerHashes: ['zero', 'one'] }
    expect(findEarlier(known, same, START_MS)).toBe(known[0])
  })
})

describe('the keys in the state', () => {
  const keyed = (key: string, seq: number) =>
    stored({ ...userMessage('x'), idempotency_key: key, body_hash: 'h' } as never, seq) as never

  test('are those of the last day, by the time of the events', () => {
    const old: PostedKey = { key: 'old', bodyHash: 'h', at: at(1000 - DAY), answer }
    const young: PostedKey = { key: 'young', bodyHash: 'h', at: at(1001 - DAY), answer }
    expect(withPostedKey([old, young], keyed('new', 1)).map(({ key }) => key)).toEqual(['young', 'new'])
  })

  test('are bounded', () => {
    let keys: readonly PostedKey[] = []
    for (let i = 1; i <= MAX_KEYS + 5; i++) keys = withPostedKey(keys, keyed(`k${i}`, i))
    expect(keys).toHaveLength(MAX_KEYS)
    expect(keys.at(-1)?.key).toBe(`k${MAX_KEYS + 5}`)
  })
})

test('the key of a deleted conversation is remembered for a day', () => {
  const creates = new CreatedKeys()
  const once = (key: string, bodyHash = 'h') =>
    answerOnce({ key, bodyHash }, { remembered: creates.of(key), make: () => 'made', again: ({ id }) => id })
  creates.remember([{ key: 'k', bodyHash: 'h', id: 'gone', at: new Date(Date.now() - DAY + 60_000).toISOString() }])
  expect(once('k')).toBe('gone')
  expect(() => once('k', 'other')).toThrow(expect.objectContaining({ code: 'idempotency_mismatch' }))
  creates.remember([{ key: 'k2', bodyHash: 'h', id: 'gone', at: new Date(Date.now() - DAY).toISOString() }])
  expect(once('k2')).toBe('made')
})

test('when a key is used again after a day, the later create counts', () => {
  const creates = new CreatedKeys()
  const at = (age: number) => new Date(Date.now() - age).toISOString()
  creates.remember([{ key: 'k', bodyHash: 'h', id: 'later', at: at(DAY / 2) }])
  creates.remember([{ key: 'k', bodyHash: 'former', id: 'earlier', at: at(DAY - 60_000) }])
  expect(creates.of('k')).toMatchObject([{ id: 'later', bodyHash: 'h' }])
})

const llm_config = (http: HttpBench, more = {}) => {
  return { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 0, ...more }
}
const withKey = (key: string) => ({ 'idempotency-key': key })

describe('POST /conversations', () => {
  test('with a known key returns the same response, including warnings, and creates one', async () => {
    await using http = await setHttp()
    const body = { title: 'one', llm_config: llm_config(http, { usage_id: 'x' }) }
    const first = await http.call('POST', '/conversations', body, withKey('key-1'))
    const again = await http.call('POST', '/conversations', body, withKey('key-1'))
    expect(first.status, first.text).toBe(201)
    expect(first.body.warnings).toHaveLength(1)
    expect({ status: again.status, body: again.body }).toEqual({ status: 201, body: first.body })
    expect(again.headers['location']).toBe(first.headers['location'])
    expect(first.text).not.toContain('key-1')
    expect(http.bench.manager.count({}).count).toBe(1)
    const other = await http.call('POST', '/conversations', { ...body, title: 'two' }, withKey('key-1'))
    expect(other).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
    expect((await http.call('POST', '/conversations', body, withKey('key-2'))).body.id).not.toBe(first.body.id)
  })

  test('one of ten concurrent requests creates it; the others are refused as in progress, and find it afterwards', async () => {
    await using http = await setHttp()
    const body = { llm_config: llm_config(http) }
    const post = () => http.call('POST', '/conversations', body, withKey('key-1'))
    const answers = await Promise.all(Array.from({ length: 10 }, post))
    const made = answers.filter(({ status }) => status === 201)
    for (const { status, body: refused } of answers.filter((one) => one.status !== 201))
      expect({ status, error: refused.error }).toEqual({ status: 409, error: 'idempotency_in_flight' })
    expect(new Set(made.map((one) => one.body.id)).size).toBe(1)
    expect((await post()).body.id).toBe(made[0]!.body.id)
    expect(http.bench.manager.count({}).count).toBe(1)
  })

  test('a failed request does not use up the key', async () => {
    await using http = await setHttp()
    const bad = { llm_config: llm_config(http), workdir: '../out' }
    expect((await http.call('POST', '/conversations', bad, withKey('k'))).status).toBe(400)
    expect((await http.call('POST', '/conversations', { llm_config: llm_config(http) }, withKey('k'))).status).toBe(201)
  })

  test('of a deleted conversation reports the deletion, also after a restart', async () => {
    await using bench = await setBench()
    const key = { key: 'k', bodyHash: 'h' }
    const request = { llm_config: { model: 'm' }, max_iteration_per_run: 5 }
    const { id } = await bench.manager.create(request, key)
    await bench.manager.delete(id)
    await expect(bench.manager.create(request, key)).rejects.toMatchObject({ code: 'conversation_deleted' })
    await bench.restart({ kill: true })
    await expect(bench.manager.create(request, key)).rejects.toMatchObject({ code: 'conversation_deleted' })
    await expect(bench.manager.create(request, { key: 'k', bodyHash: 'other' })).rejects.toMatchObject({
      code: 'idempotency_mismatch',
    })
    expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([])
  })

  test('of a conversation that was deleted because its create failed creates another one, also after a restart', async () => {
    await using bench = await setBench()
    const key = { key: 'k', bodyHash: 'h' }
    const request = { llm_config: { model: 'm' }, max_iteration_per_run: 5 }
    const first = await bench.manager.create(request, key)
    await bench.manager.delete(first.id, { freesKey: true })
    const second = await bench.manager.create(request, key)
    expect(second.id).not.toBe(first.id)
    expect((await bench.manager.create(request, key)).id).toBe(second.id)
    await bench.manager.delete(second.id, { freesKey: true })
    await bench.restart({ kill: true })
    const third = await bench.manager.create(request, { key: 'k', bodyHash: 'other' })
    expect((await bench.manager.create(request, { key: 'k', bodyHash: 'other' })).id).toBe(third.id)
  })

  test('after a restart, with and without meta.json, answers the same', async () => {
    await using bench = await setBench()
    const key = { key: 'k', bodyHash: 'h' }
    const request = { llm_config: { model: 'm' }, max_iteration_per_run: 5 }
    const { id } = await bench.manager.create(request, key)
    await bench.restart()
    expect((await bench.manager.create(request, key)).id).toBe(id)
    await bench.restart({ kill: true, between: () => rm(join(bench.sessionOf(id), 'meta.json'), { force: true }) })
    expect((await bench.manager.create(request, key)).id).toBe(id)
    expect((await bench.manager.list(ListConversations.parse({}))).items).toHaveLength(1)
  })
})

describe('POST messages', () => {
  test('with a known key returns the same response, and is posted once, also concurrently and after a restart', async () => {
    // A manager that is only dropped writes on when the model answers.
    await using bench = await setBench({ script: () => ({ delay_ms: 60_000 }) })
    const conversation = await bench.converse()
    const key = { key: 'k', bodyHash: 'h' }
    const post = async () => await (await bench.manager.open(conversation.id)).post(userText('hi', true), key)
    const answers = await Promise.all(Array.from({ length: 5 }, post))
    await bench.restart({ kill: true })
    answers.push(await post())
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(answers[0]).toMatchObject({ event_id: expect.any(String), seq: 2, run_id: expect.any(String) })
    const events = await eventsOf(await bench.manager.open(conversation.id))
    expect(only(events, 'UserMessage')).toMatchObject([{ idempotency_key: 'k', body_hash: 'h' }])
  })

  test('with another body is 422; keys of different conversations are independent', async () => {
    await using http = await setHttp()
    const [one, two] = [await http.create(), await http.create()]
    const post = (id: string, text: string) =>
      http.call('POST', `/conversations/${id}/messages`, userText(text), withKey('k'))
    const first = await post(one, 'hi')
    expect(first.status).toBe(202)
    expect((await post(one, 'hi')).body).toEqual(first.body)
    expect(await post(one, 'ho')).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
    expect((await post(two, 'ho')).body.event_id).not.toBe(first.body.event_id)
    expect((await http.call('GET', `/conversations/${one}`)).text).not.toContain('"k"')
  })

  test('a key that the state no longer holds is found in the log', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    const post = (n: number, bodyHash = 'h') => conversation.post(userText(`m${n}`), { key: `k${n}`, bodyHash })
    const first = await post(0)
    for (let n = 1; n <= MAX_KEYS; n++) void (await post(n))
    expect(conversation.state.postedKeys.some(({ key }) => key === 'k0')).toBe(false)
    expect(await post(0)).toEqual(first)
    await expect(post(0, 'other')).rejects.toMatchObject({ code: 'idempotency_mismatch' })
    expect(conversation.state.lastSeq).toBe(MAX_KEYS + 2)
  })
})

test.each(['', 'two words', 'ümlaut', 'x'.repeat(256), 'tab\there'])('the key %j is refused', async (key) => {
  await using http = await setHttp()
  const id = await http.create()
  for (const [url, body] of [
    ['/conversations', { llm_config: { model: 'm' } }],
    [`/conversations/${id}/messages`, userText('hi')],
  ] as const) {
    const refused = await http.call('POST', url, body, withKey(key))
    expect(refused, refused.text).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(refused.body.message).toContain('idempotency-key')
  }
})
