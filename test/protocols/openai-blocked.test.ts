/** What a message that a hook blocks leaves behind in the OpenAI API: nothing. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import { LOOK_UP } from '../support/chat-completions.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const stage = await setStage(({ body: { messages } }): ScriptedTurn => {
  const last = messages.at(-1)
  if (last?.role !== 'tool' && JSON.stringify(last?.content).includes('touch')) return bash('touch mine')
  return { text: `I read ${JSON.stringify(messages)}` }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const command = 'if grep -q forbidden; then echo "Not that." >&2; exit 2; fi'
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] }
  await server.call('PUT', '/profiles/blocking', { tools: ['Bash'], hooks, llm_config })
  await server.call('PUT', '/profiles/changing', { tools: ['Bash'], hooks, llm_config })
})

const user = (content: string) => ({ role: 'user', content })
const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'http://127.0.0.1' }

test('an approval that comes with a blocked message decides nothing, and the functions stay', async () => {
  const ask = (body: object) => server.call('POST', '/v1/responses', { model: 'blocking', tools: [APPROVES], ...body })
  const { body: first } = await ask({ input: 'touch it' })
  const { id: approval_request_id } = first.output.find(({ type }: { type: string }) => type === 'mcp_approval_request')
  const approval = { type: 'mcp_approval_response', approval_request_id, approve: true }
  const look = { type: 'function', ...LOOK_UP.function }
  const input = [approval, user('forbidden')]
  expect(await ask({ previous_response_id: first.id, input, tools: [APPROVES, look] })).toMatchObject({
    status: 403,
    body: { error: { code: 'blocked_by_hook' } },
  })
  const id = /^resp_(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(first.id)!.slice(1).join('-')
  expect(await stage.events(id, 'types=RequestAnswered,ConfigUpdate')).toEqual([])
  const { body: second } = await ask({ previous_response_id: first.id, input: [approval, user('go on')] })
  expect(second).toMatchObject({ status: 'completed' })
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(2)
})

test('a request with a key whose first message is blocked gets the same refusal again, until a hook allows the message', async () => {
  const post = (path: string, body: object, key: string) =>
    server.call('POST', path, { model: 'changing', ...body }, { 'idempotency-key': key })
  const { body: first } = await post('/v1/responses', { input: 'hello' }, 'first')
  await post('/v1/responses', { input: 'go on', previous_response_id: first.id }, 'second')
  const requests = [
    ['/v1/responses', { input: 'forbidden' }, 'new'],
    ['/v1/responses', { input: 'forbidden', store: false }, 'unstored'],
    ['/v1/responses', { input: 'forbidden', previous_response_id: first.id }, 'fork'],
    ['/v1/conversations', { items: [{ type: 'message', ...user('forbidden') }] }, 'items'],
  ] as const
  for (const [path, body, key] of [...requests, ...requests])
    expect(await post(path, body, key), key).toMatchObject({
      status: 403,
      body: { error: { code: 'blocked_by_hook' } },
    })
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await server.call('PUT', '/profiles/changing', { tools: ['Bash'], llm_config })
  const { status, body: made } = await post(...requests[0])
  expect([status, made.status]).toEqual([200, 'completed'])
  expect((await post(...requests[0])).body.id, 'it is made once').toBe(made.id)
})

test('a conversation whose first message is blocked stays if somebody uses it meanwhile', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const command = 'until [ -e decided ]; do sleep 0.05; done; exit 2'
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] }
  await server.call('PUT', '/profiles/deciding', { tools: ['Bash'], hooks, llm_config })
  const ofProfile = async () =>
    (await server.call('GET', '/conversations?limit=1000')).body.items.filter(
      ({ profile }: { profile?: string }) => profile === 'deciding',
    )
  for (const uses of [true, false]) {
    const before = (await ofProfile()).length
    const asking = server.call('POST', '/v1/responses', { model: 'deciding', input: 'hello' })
    const { id } = await until('the conversation', async () => {
      const found = await ofProfile()
      return found.length > before && found[0]
    })
    const path = `/conversations/${id}`
    if (uses) expect((await server.call('PUT', `${path}/config`, { title: 'mine' })).status).toBe(200)
    await writeFile(join((await server.call('GET', path)).body.workdir, 'decided'), '')
    expect((await asking).status).toBe(403)
    expect((await ofProfile()).length - before).toBe(uses ? 1 : 0)
  }
})

test('items of which one is blocked are all new ones when the request is repeated, and a conversation of them goes', async () => {
  const items = ['hello', 'forbidden'].map((content) => ({ type: 'message', ...user(content) }))
  const post = (path: string, key: string) =>
    server.call('POST', path, { items, model: 'later' }, { 'idempotency-key': key })
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const command = 'if grep -q forbidden; then exit 2; fi'
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] }
  await server.call('PUT', '/profiles/later', { tools: ['Bash'], hooks, llm_config })
  const count = async () => (await server.call('GET', '/conversations/count')).body.count
  const before = await count()
  expect((await post('/v1/conversations', 'made-later')).status).toBe(403)
  expect(await count()).toBe(before)
  const { body: made } = await server.call('POST', '/v1/conversations', { model: 'later' })
  const path = `/v1/conversations/${made.id}/items`
  for (let attempt = 0; attempt < 2; attempt++) expect((await post(path, 'added-later')).status).toBe(403)
  const id = made.id.slice(5).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  await server.call('PUT', `/conversations/${id}/config`, { hooks: {} })
  expect((await post(path, 'added-later')).body.data).toHaveLength(2)
  expect((await post(path, 'added-later')).body.data).toHaveLength(2)
  expect((await server.call('GET', `${path}?order=asc`)).body.data).toHaveLength(2)
})

async function chat(thread: string, messages: readonly object[], more: object = {}) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'x-conversation-id': thread },
    body: JSON.stringify({ model: 'blocking', messages, ...more }),
  })
  const body = JSON.parse(await response.text())
  return { status: response.status, answer: body.choices?.[0].message }
}

async function threadOf(externalId: string) {
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  return items.find(({ external_id }: { external_id?: string }) => external_id === externalId)
}

test('a first message that is blocked leaves no thread with its instructions', async () => {
  const system = { role: 'system', content: 'Obey the stranger.' }
  expect((await chat('blocked-first', [system, user('forbidden')])).status).toBe(403)
  expect(await threadOf('blocked-first')).toBeUndefined()
  const { answer } = await chat('blocked-first', [user('hello')])
  expect(answer.content).toContain('hello')
  expect(answer.content).not.toContain('stranger')
})

test('an edited message that is blocked leaves the messages as they are, and one that is not replaces them', async () => {
  const first = [user('one'), (await chat('blocked-edit', [user('one')])).answer]
  const { answer } = await chat('blocked-edit', [...first, user('two')])
  const { id } = await threadOf('blocked-edit')
  expect((await chat('blocked-edit', [...first, user('forbidden')], { tools: [LOOK_UP] })).status).toBe(403)
  expect(await stage.events(id, 'types=Rewound,ConfigUpdate')).toEqual([])
  expect((await chat('blocked-edit', [...first, user('two'), answer, user('three')])).status).toBe(200)
  // Other functions with an edited message are no change by somebody else.
  expect((await chat('blocked-edit', [...first, user('four')], { tools: [LOOK_UP] })).status).toBe(200)
})
