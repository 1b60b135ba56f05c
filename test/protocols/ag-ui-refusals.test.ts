/** What the route of AG-UI refuses, and whose threads a key reaches: raw requests to a real server. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Interrupt } from '@ag-ui/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Page } from '../support/ag-ui-page.ts'
import type { RunSendOptions } from '../support/ag-ui-send.ts'
import { sendRun } from '../support/ag-ui-send.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const stage = await setStage(({ body: { messages } }) => {
  const last = messages.at(-1)
  const said = JSON.stringify(last?.content)
  if (last?.role !== 'tool' && said.includes('touch')) return bash('touch mine')
  return {
    text: `I read ${JSON.stringify(messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])))}`,
  }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  for (const name of ['ag-ui-coder', 'ag-ui-other'])
    await server.call('PUT', `/profiles/${name}`, { tools: ['Bash'], llm_config })
})

const send = (input: unknown, options: Partial<RunSendOptions> = {}) =>
  sendRun(server.url, input, { path: '/ag-ui/ag-ui-coder', ...options })

const hello = (threadId: string, more: object = {}) => {
  return { threadId, runId: 'run-1', messages: [{ id: `${threadId}-1`, role: 'user', content: 'Hello' }], ...more }
}
const user = (content: unknown) => [{ id: 'one', role: 'user', content }]

const keyFor = async (fields: object): Promise<string> =>
  (await server.call('POST', '/keys', { name: 'a test', scopes: ['read', 'write'], ...fields })).body.key

test('a run begins with RUN_STARTED, and ends with RUN_FINISHED, of the client’s ids', async () => {
  const { events, headers } = await send(
    hello('raw', { unknownField: 1, forwardedProps: { a: null }, state: null, protocolVersion: '1.7' }),
  )
  expect(headers.get('x-accel-buffering')).toBe('no')
  const ids = { threadId: 'raw', runId: 'run-1' }
  expect(events[0]).toMatchObject({ type: 'RUN_STARTED', protocolVersion: '1.0', ...ids })
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', ...ids })
  expect(events.every(({ timestamp }) => Number.isInteger(timestamp))).toBe(true)
})

test('what is not valid is refused by name before anything happens', async () => {
  const remote = { type: 'image', source: { type: 'url', value: 'https://example.com/cat.png' } }
  const wrong: [unknown, RegExp][] = [
    ['{', /JSON/],
    [{}, /threadId/],
    [[], /body|threadId|expected/i],
    [{ ...hello('wrong'), threadId: '' }, /threadId/],
    [{ ...hello('wrong'), threadId: 'x'.repeat(201) }, /threadId/],
    [{ ...hello('wrong'), runId: 1 }, /runId/],
    [{ ...hello('wrong'), protocolVersion: '2.0' }, /protocolVersion/],
    [{ ...hello('wrong'), messages: 'Hello' }, /messages/],
    [{ ...hello('wrong'), messages: [] }, /messages/],
    [{ ...hello('wrong'), messages: [{ role: 'user', content: 'no id' }] }, /id/],
    [{ ...hello('wrong'), messages: [...user('a'), ...user('b')] }, /one id/],
    [{ ...hello('wrong'), messages: user(' ') }, /text or image/],
    [{ ...hello('wrong'), messages: user([remote]) }, /URLs are not fetched/],
    [{ ...hello('wrong'), messages: user([7]) }, /invalid|expected|object/i],
    [{ ...hello('wrong'), tools: [{ name: 'mcp__a__b', description: '' }] }, /name/],
    [{ ...hello('wrong'), tools: [{ name: 'Bash', description: '' }] }, /Bash|name/],
    // To read it as an object, character by character, takes seconds.
    [{ ...hello('wrong'), tools: [{ name: 'look', parameters: 'x'.repeat(200_000) }] }, /parameters/],
    [{ ...hello('wrong'), tools: [{ name: 'look', parameters: [7] }] }, /parameters/],
    [{ ...hello('wrong'), resume: [{ interruptId: 'x', status: 'maybe' }] }, /resume/],
    [{ ...hello('wrong'), context: [{ description: 'a', value: 'x'.repeat(70_000) }] }, /context/],
  ]
  for (const [body, message] of wrong) {
    const refused = await send(body)
    expect([refused.status, refused.body?.error], JSON.stringify(body)).toEqual([400, 'invalid_request'])
    expect(refused.body.message).toMatch(message)
  }
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  expect(items.map(({ external_id }: { external_id?: string }) => external_id)).not.toContain('wrong')
})

test('parts that cannot be read do not fail the run, and the agent knows what the application says', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const parts = [
    { type: 'text', text: 'See:' },
    { type: 'image', source: { type: 'data', value: png, mimeType: 'image/png' } },
    { type: 'document', source: { type: 'data', value: Buffer.from('a, b').toString('base64'), mimeType: 'text/csv' } },
    { type: 'audio', source: { type: 'url', value: 'https://example.com/a.mp3' } },
  ]
  const context = [{ description: 'Page', value: 'orders' }]
  const page = new Page(server.url, 'parts', KEY, 'ag-ui-coder')
  page.agent.setMessages([
    { id: 's', role: 'system', content: 'Be kind.' },
    { id: 'u0', role: 'user', content: 'long ago' },
    { id: 'a0', role: 'assistant', content: 'It was.' },
    { id: 'u1', role: 'user', content: parts as any }, // eslint-disable-line typescript/no-explicit-any
  ])
  await page.run({ context })
  const answer = page.text.at(-1)
  for (const text of ['long ago', 'It was.', 'See:', 'a, b', 'type audio', 'Page: orders'])
    expect(answer).toContain(text)
  await page.say('next', { context })
  // Once is enough.
  expect(page.text.at(-1)?.split('Page: orders')).toHaveLength(2)
  const fresh = new Page(server.url, 'parts', KEY, 'ag-ui-coder')
  await fresh.run()
  expect(JSON.stringify(fresh.agent.messages[0])).not.toContain('application_context')
  expect(fresh.agent.messages.at(-1)).toEqual(page.agent.messages.at(-1))
})

test('the same message twice is one message, and two first requests make one thread', async () => {
  const [one, two] = await Promise.all([send(hello('twice')), send(hello('twice'))])
  expect(Math.min(one.status, two.status)).toBe(200)
  await expect.poll(async () => (await send(hello('twice'))).events.at(-1)?.outcome?.type).toBe('success')
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  const made = items.filter(({ external_id }: { external_id?: string }) => external_id === 'twice')
  expect(made).toHaveLength(1)
  expect(await stage.events(made[0].id, 'types=UserMessage')).toHaveLength(1)
})

test('a decision needs the scope approve, and a thread is that of its user and its profile', async () => {
  const narrow = await keyFor({ profiles: ['ag-ui-coder'], user_id: 'user-17' })
  expect(await send(hello('t'), { key: narrow, path: '/ag-ui/ag-ui-other' })).toMatchObject({ status: 404 })
  expect(await send(hello('t'), { path: '/ag-ui/missing' })).toMatchObject({
    status: 404,
    body: { error: 'profile_not_found' },
  })
  const page = new Page(server.url, 'mine', narrow, 'ag-ui-coder')
  const asked = await page.say('touch mine')
  const [{ id: interruptId }] = asked.interrupts as [Interrupt]
  const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }]
  const answer = { threadId: 'mine', runId: 'r', messages: page.agent.messages, resume }
  expect(await send(answer, { key: narrow })).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  for (const payload of [{}, { approved: 'yes' }, 'approved', null, undefined])
    expect(await send({ ...answer, resume: [{ ...resume[0], payload }] }, { key: narrow })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('approved') },
    })
  // The master key has no user: its thread of this name is another one.
  const other = await send(hello('mine'))
  expect(other.events.some(({ type }) => type === 'MESSAGES_SNAPSHOT')).toBe(false)
  const stranger = await keyFor({ user_id: 'user-18', scopes: ['read', 'write', 'approve'] })
  expect((await send({ ...answer, messages: [] }, { key: stranger })).status).toBe(400)
  expect(await send({ threadId: 'mine' }, { key: stranger, path: '/ag-ui/ag-ui-other/stop' })).toMatchObject({
    status: 404,
  })
  const { items } = (await server.call('GET', '/conversations?user_id=user-17')).body
  const missing = access(join(items[0].workdir, 'mine')).then(
    () => false,
    () => true,
  )
  expect(await missing).toBe(true)
  const decider = await keyFor({ user_id: 'user-17', scopes: ['read', 'write', 'approve'] })
  expect((await send(answer, { key: decider })).events.at(-1)).toMatchObject({ outcome: { type: 'success' } })
  await access(join(items[0].workdir, 'mine'))
  // The thread has another profile.
  expect(await send(hello('mine'), { path: '/ag-ui/ag-ui-other' })).toMatchObject({
    status: 409,
    body: { error: 'conversation_exists' },
  })
  for (const scopes of [['read'], ['write']])
    expect(await send(hello('t'), { key: await keyFor({ scopes }) })).toMatchObject({ status: 403 })
  const unauthorized = await send(hello('t'), { key: '' })
  expect([unauthorized.status, unauthorized.headers.get('www-authenticate')]).toEqual([
    401,
    expect.stringContaining('Bearer'),
  ])
  expect(await send({ threadId: 'none' }, { path: '/ag-ui/ag-ui-coder/stop' })).toMatchObject({ status: 404 })
})

test('a page can have a key of one conversation, which makes no other thread', async () => {
  await send(hello('own'))
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  const { id } = items.find(({ external_id }: { external_id?: string }) => external_id === 'own')
  const key = await keyFor({ conversations: [id] })
  const page = new Page(server.url, 'own', key, 'ag-ui-coder')
  expect((await page.say('and this')).outcome).toBe('success')
  expect(page.text.at(-1)).toContain('Hello')
  expect(await send(hello('another'), { key })).toMatchObject({ status: 403 })
  expect(await send({ threadId: 'raw' }, { key, path: '/ag-ui/ag-ui-coder/stop' })).toMatchObject({ status: 404 })
})
