/** Replays over HTTP: what each key may ask, whom forks tell what they do, and what they are not shown in. */
import { afterAll, expect, test } from 'vitest'
import type { Replay } from '../../src/contract/replay.ts'
import { realShells } from '../conversations/fixtures.ts'
import { startReceiver } from '../support/receiver.ts'
import { subscribe } from '../support/stream.ts'
import { takeTime } from '../support/take-time.ts'
import { expectProblem, KEY, setHttp } from './fixtures.ts'

const http = await setHttp({
  script: () => ({ text: 'Hello.', usage: { prompt_tokens: 90, completion_tokens: 10 } }),
  deps: { createShells: realShells() },
})
afterAll(() => http[Symbol.asyncDispose]())

const PRICES = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
const LLM = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model', ...PRICES }
const createFor = (fields: object = {}) => http.create({ llm_config: LLM, initial_message: 'Go.', ...fields })

async function keyFor(scopes: readonly string[], limits: object = {}): Promise<Record<string, string>> {
  const { body } = await http.call('POST', '/keys', { name: 'a client', scopes, ...limits })
  return { authorization: `Bearer ${body.key}` }
}

const ask = (ids: readonly string[], fields: object, key?: Record<string, string>) =>
  http.call('POST', '/replays', { conversation_ids: ids, max_cost_usd: 1, ...fields }, key)

async function ended(id: string): Promise<Replay> {
  for (;;) {
    const { body } = await http.call('GET', `/replays/${id}`)
    if (body.status !== 'running') return body
    await takeTime(5)
  }
}

test('a replay needs write, its check commands, another mode or network approve, and another endpoint read', async () => {
  const id = await createFor()
  const write = await keyFor(['write'])
  const missing = async (fields: object, key = write) => (await ask([id], fields, key)).body.details?.missing_scopes
  expect(await missing({}, await keyFor(['read']))).toEqual(['write'])
  expect(await missing({ check: { command: 'true' } })).toEqual(['commands'])
  expect(await missing({ permission_mode: 'deny' })).toEqual(['approve'])
  expect(await missing({ network: { mode: 'open' } })).toEqual(['approve'])
  for (const llm_config of [{ base_url: 'http://127.0.0.1:9' }, { model: 'other' }, { api_key: 'sk-other-4711' }])
    expect(await missing({ llm_configs: [{}, llm_config] })).toEqual(['read'])
  const { status, body, headers } = await ask([id], { llm_configs: [{ temperature: 0 }] }, write)
  expect([status, headers['location']]).toEqual([201, `/replays/${body.id}`])
  expectProblem(await http.call('GET', `/replays/${body.id}`, undefined, write), 403, 'forbidden')
  await ended(body.id)
})

test('a network policy with a secret of an original is refused, in letters of any case', async () => {
  const id = await createFor({ secrets: { HOST_OF_STAGING: 'staging-host-4711' } })
  const network = { mode: 'allowlist', allow: ['Staging-Host-4711.example.com'] }
  const { status, body } = await ask([await createFor(), id], { network })
  expect([status, body.error]).toEqual([400, 'invalid_request'])
  expect(body.message).toMatch(/^network contains the value of a secret/)
})

test('a key sees and cancels replays only of conversations that it sees, and makes none of others', async () => {
  const [mine, theirs] = [await createFor({ user_id: 'me' }), await createFor({ user_id: 'them' })]
  const key = await keyFor(['read', 'write'], { user_id: 'me' })
  for (const ids of [[theirs], [mine, theirs], [crypto.randomUUID()]])
    expectProblem(await ask(ids, {}, key), 404, 'conversation_not_found')
  const limited = await keyFor(['read', 'write'], { conversations: [mine] })
  expectProblem(await ask([mine], {}, limited), 403, 'forbidden')
  const { id } = (await ask([mine], {}, key)).body
  const { id: other } = (await ask([mine, theirs], {})).body
  for (const method of ['GET', 'DELETE'])
    expectProblem(await http.call(method, `/replays/${other}`, undefined, key), 404, 'replay_not_found')
  const listed = await http.call('GET', '/replays', undefined, key)
  expect(listed.body.items.map((each: Replay) => each.id)).toEqual([id])
  expect(await ended(other)).toMatchObject({ status: 'completed' })
  const [{ conversation_id: fork }] = (await ended(id)).rows as [Replay['rows'][0]]
  const others = await keyFor(['read'], { user_id: 'them' })
  expectProblem(await http.call('GET', `/conversations/${fork}`, undefined, others), 404, 'conversation_not_found')
})

test('a key without read does not see what a row failed with', async () => {
  const id = await createFor()
  const { body } = await ask([id], { llm_configs: [{ model: 'openai/of-unknown-price' }] })
  expect((await ended(body.id)).rows[0]?.message).toContain('of-unknown-price')
  const answer = await http.call('DELETE', `/replays/${body.id}`, undefined, await keyFor(['write']))
  expect([answer.status, answer.body.rows[0].message]).toEqual([200, undefined])
})

test('the same request with an idempotency key makes one replay', async () => {
  const id = await createFor()
  const body = { conversation_ids: [id], max_cost_usd: 1 }
  const send = (fields: object = {}) =>
    http.call('POST', '/replays', { ...body, ...fields }, { 'idempotency-key': `replay-${id}` })
  const [first, again] = [await send(), await send()]
  expect(again.body.id).toBe(first.body.id)
  expectProblem(await send({ max_cost_usd: 2 }), 422, 'idempotency_mismatch')
  await ended(first.body.id)
})

test('callbacks receive nothing of forks, and the firehose and the lists have only those that are named', async () => {
  await using receiver = await startReceiver()
  const id = await createFor()
  await http.call('POST', `/conversations/${id}/callbacks`, { url: receiver.url })
  const url = await http.listen()
  const header = { authorization: `Bearer ${KEY}` }
  const all = await subscribe(url, '/firehose', header)
  const done = await ended((await ask([id], { repeat: 2 })).body.id)
  const forks = done.rows.map((row) => row.conversation_id)
  expect(done.rows.map(({ outcome }) => outcome)).toEqual(['completed', 'completed'])
  expect((await http.call('GET', `/conversations/${forks[0]}/callbacks`)).body.items).toEqual([])
  // What follows is after the events of the forks on the firehose.
  const { body } = await http.call('POST', `/conversations/${id}/messages`, { message: 'the end' })
  await all.until((frame) => frame.data.id === body.event_id)
  expect(all.frames.some(({ data }) => forks.includes(data.conversation_id as string))).toBe(false)
  expect(JSON.stringify(receiver.received)).not.toContain(forks[0])
  for (const path of ['/conversations?limit=1000', '/conversations/summaries?limit=1000', '/requests'])
    expect((await http.call('GET', path)).text).not.toContain(forks[0])
  all.close()
  const { status } = await http.call('GET', `/conversations/${forks[0]}`)
  expect(status).toBe(200)
})
