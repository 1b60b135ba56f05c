/** A conversation that begins to run with the request that creates it. */
import { expect, test } from 'vitest'
import { ConversationView } from '../../src/contract/conversation.ts'
import { connectAs } from '../support/socket.ts'
import { call as toolCall, gate, MODEL_KEY } from '../conversations/fixtures.ts'
import type { HttpBench } from './fixtures.ts'
import { expectProblem, KEY, setHttp } from './fixtures.ts'

const inside = (http: HttpBench, fields: object) => ({
  llm_config: { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 0 },
  initial_message: 'Say hello.',
  run: true,
  ...fields,
})

async function runsOf(http: HttpBench, id: string) {
  const { items } = (await http.call('GET', `/conversations/${id}/events?types=StatusUpdate`)).body
  return items.filter(({ status }: { status: string }) => status === 'running')
}

test('with run and wait, one request creates it and returns what the agent answered', async () => {
  await using http = await setHttp()
  const { status, body } = await http.call('POST', '/conversations', inside(http, { wait: true }))
  expect(status).toBe(201)
  expect(ConversationView.parse(body)).toMatchObject({ status: 'idle', result: { final_text: 'Hello.' } })
  expect(body.result.run_id).toBe(body.run_id)
  const { items } = (await http.call('GET', `/conversations/${body.id}/events?types=UserMessage`)).body
  expect(items).toMatchObject([{ content: [{ type: 'text', text: 'Say hello.' }] }])
})

test('a run that fails, one that waits and one that takes longer than the timeout are told apart', async () => {
  const slow = gate('Slow')
  await using http = await setHttp({
    tools: [slow.tool],
    script: ({ text }) => {
      if (text.includes('Fail.')) return { status: 400, error: 'no such model' }
      return text.includes('slowly') ? { calls: [toolCall('Slow')] } : { text: 'Hello.' }
    },
  })
  const create = async (fields: object) => (await http.call('POST', '/conversations', inside(http, fields))).body
  const failed = await create({ initial_message: 'Fail.', wait: true })
  expect(failed).toMatchObject({
    status: 'error',
    result: { stop_reason: 'error' },
    error: { type: 'config' },
  })
  const waiting = await create({ initial_message: 'Go slowly.', wait: true, permission_mode: 'default' })
  expect(waiting).toMatchObject({ status: 'waiting_for_confirmation', run_id: expect.any(String) })
  expect(waiting).not.toHaveProperty('result')
  const late = await create({ initial_message: 'Go slowly.', wait: true, timeout: 0.01 })
  expect(late).toMatchObject({ status: 'running', run_id: expect.any(String) })
  expect(late).not.toHaveProperty('result')
  slow.open()
})

test('repeated with its key, the request starts no second run, and returns the end of the first', async () => {
  await using http = await setHttp()
  const header = { 'idempotency-key': 'the-first-run' }
  const wanted = inside(http, { wait: true })
  const first = (await http.call('POST', '/conversations', wanted, header)).body
  await http.call('POST', `/conversations/${first.id}/messages`, { message: 'Again.', run: false })
  await http.call('POST', `/conversations/${first.id}/run`, { wait: true })
  const again = (await http.call('POST', '/conversations', wanted, header)).body
  expect([again.id, again.run_id, again.result]).toEqual([first.id, first.run_id, first.result])
  expect(await runsOf(http, first.id)).toHaveLength(2)
})

test('one of two equal requests at once starts the run, and both return its end', async () => {
  await using http = await setHttp()
  const header = { 'idempotency-key': 'both' }
  const create = () => http.call('POST', '/conversations', inside(http, { wait: true }), header)
  const [one, other] = await Promise.all([create(), create()])
  // The second may come while the first still creates.
  const answered = [one, other].filter(({ status }) => status === 201)
  const refused = [one, other].filter(({ status }) => status !== 201)
  for (const answer of refused) expectProblem(answer, 409, 'idempotency_in_flight')
  expect(new Set(answered.map(({ body }) => body.result.run_id)).size).toBe(1)
  expect(await runsOf(http, answered[0]!.body.id)).toHaveLength(1)
})

test('a wait ends with a problem when the conversation is deleted', async () => {
  const slow = gate('Slow')
  await using http = await setHttp({ tools: [slow.tool], script: () => ({ calls: [toolCall('Slow')] }) })
  const id = '11111111-1111-4111-8111-111111111111'
  const waiting = http.call('POST', '/conversations', inside(http, { id, wait: true }))
  await slow.entered
  expect((await http.call('DELETE', `/conversations/${id}`)).status).toBe(204)
  expectProblem(await waiting, 410, 'conversation_deleted')
})

test('a run without a message, and a wait without a run, are refused, and create nothing', async () => {
  await using http = await setHttp()
  const withoutMessage = await http.call('POST', '/conversations', { run: true })
  expectProblem(withoutMessage, 400, 'invalid_request')
  expect(withoutMessage.body.message).toContain('run: needs initial_message')
  const withoutRun = await http.call('POST', '/conversations', { initial_message: 'Hello.', wait: true })
  expect(withoutRun.body.message).toContain('wait: needs run: true')
  expect((await http.call('GET', '/conversations/count')).body).toEqual({ count: 0 })
})

test('without the scope read a key creates conversations, and does not wait for what the agent says', async () => {
  await using http = await setHttp()
  const { key } = (await http.call('POST', '/keys', { name: 'writer', scopes: ['write'] })).body
  const header = { authorization: `Bearer ${key}` }
  const fields = { llm_config: { model: 'scripted', api_key: MODEL_KEY }, initial_message: 'Hello.' }
  const refused = await http.call('POST', '/conversations', { ...fields, run: true, wait: true }, header)
  expectProblem(refused, 403, 'forbidden')
  expect(refused.body.details).toEqual({ missing_scopes: ['read'] })
  const mode = { permission_mode: 'default', allowed_tools: ['Bash(ls)'] }
  expect((await http.call('POST', '/conversations', { ...fields, ...mode }, header)).status).toBe(201)
})

test('the first frame of a socket starts the run, too, and its events follow', async () => {
  await using http = await setHttp()
  const url = await http.listen()
  const headers = { authorization: `Bearer ${KEY}` }
  const socket = await connectAs(url, '/conversations/ws?create=frame', { headers })
  socket.say({ type: 'create', conversation: inside(http, {}) })
  expect(await socket.until(({ type }) => type === 'Result')).toMatchObject({ final_text: 'Hello.' })
  socket.close()
  const waiting = await connectAs(url, '/conversations/ws?create=frame', { headers })
  waiting.say({ type: 'create', conversation: inside(http, { wait: true }) })
  expect((await waiting.until(({ type }) => type === 'error')).message).toContain('leave out wait')
})
