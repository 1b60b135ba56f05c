/** What each protocol refuses besides the body: versions that the server does not speak, conversations that do not exist, and rights. */
import { afterAll, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import type { SocketClient } from '../support/socket.ts'
import { connect } from '../support/socket.ts'

const stage = await setStageHere(() => ({ text: 'Read.' }), { OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,mcp,acp,a2a' })
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { llm_config: LLM })

const id = () => crypto.randomUUID()
const hex = () => id().replaceAll('-', '')
const user = (content: string) => ({ id: id(), role: 'user', content })
const toA2a = (more: object) => ({
  message: { messageId: id(), role: 'ROLE_USER', parts: [{ text: 'Hello' }], ...more },
})
const META = 'io.modelcontextprotocol'
const ofMcp = (version: string, method: string, params: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      [`${META}/protocolVersion`]: version,
      [`${META}/clientInfo`]: { name: 'test', version: '1' },
      [`${META}/clientCapabilities`]: { extensions: { [`${META}/tasks`]: {} } },
    },
  },
})
const mcpHeaders = (version: string, method: string, name?: string) => ({
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': version,
  'mcp-method': method,
  ...(name !== undefined && { 'mcp-name': name }),
})

async function post(path: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status: response.status, body: json.startsWith('{') ? JSON.parse(json) : json }
}

const rpcError = (code: number) => ({ jsonrpc: '2.0', error: { code, message: expect.any(String) } })
const httpError = (reason: string) => ({ error: { message: expect.any(String), details: [{ reason }] } })
const openAiError = (code: string, param: string) => ({ error: { message: expect.any(String), code, param } })

test('a version that the server does not speak is refused by each protocol that has versions', async () => {
  const run = { threadId: id(), runId: id(), protocolVersion: '2.0', messages: [user('Hello')] }
  expect(await post('/ag-ui/default', run)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(
    await post('/mcp', ofMcp('2099-01-01', 'tools/list', {}), mcpHeaders('2099-01-01', 'tools/list')),
  ).toMatchObject({
    status: 400,
    body: rpcError(-32_022),
  })
  const old = { 'a2a-version': '0.3' }
  expect(await post('/a2a/v1/message:send', toA2a({}), old)).toMatchObject({
    status: 400,
    body: httpError('VERSION_NOT_SUPPORTED'),
  })
  const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: toA2a({}) }
  expect(await post('/a2a', rpc, old)).toMatchObject({ status: 200, body: rpcError(-32_009) })
  const socket = await connect(server.url, '/acp')
  expect(await ask(socket, 'initialize', { protocolVersion: 0 })).toMatchObject({ error: { code: -32_022 } })
  socket.close()
})

test('what does not exist is refused by each protocol, in its form', async () => {
  const previous = { model: 'default', input: 'Hello', previous_response_id: `resp_${hex()}_2` }
  const missing = openAiError('previous_response_not_found', 'previous_response_id')
  expect(await post('/v1/responses', previous)).toMatchObject({ status: 404, body: missing })
  const named = { model: 'default', input: 'Hello', conversation: `conv_${hex()}` }
  expect(await post('/v1/responses', named)).toMatchObject({
    status: 404,
    body: openAiError('not_found', 'conversation'),
  })
  const call = `call_${hex()}_call_1_1`
  const result = { role: 'tool', tool_call_id: call, content: 'found' }
  const asked = {
    role: 'assistant',
    tool_calls: [{ id: call, type: 'function', function: { name: 'f', arguments: '' } }],
  }
  const chat = { model: 'default', messages: [user('Hello'), asked, result] }
  expect(await post('/v1/chat/completions', chat)).toMatchObject({
    status: 400,
    body: openAiError('invalid_value', 'tool_call_id'),
  })
  const missingModel = { model: 'no-such', messages: [user('Hello')] }
  expect(await post('/v1/chat/completions', missingModel)).toMatchObject({
    status: 404,
    body: openAiError('model_not_found', 'model'),
  })
  expect(await post(`/ai/chat/${id()}/stop`, {})).toMatchObject({ status: 404, body: expect.stringMatching(/no chat/) })
  expect(await post('/ag-ui/default/stop', { threadId: id() })).toMatchObject({
    status: 404,
    body: { error: 'conversation_not_found' },
  })
  const V = '2026-07-28'
  const taskId = `${id()}.3`
  expect(await post('/mcp', ofMcp(V, 'tasks/get', { taskId }), mcpHeaders(V, 'tasks/get', taskId))).toMatchObject({
    body: rpcError(-32_602),
  })
  const now = { 'a2a-version': '1.0' }
  const unknown = toA2a({ taskId: `${id()}-2` })
  expect(await post('/a2a/v1/message:send', unknown, now)).toMatchObject({
    status: 404,
    body: httpError('TASK_NOT_FOUND'),
  })
  const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: unknown }
  expect(await post('/a2a', rpc, now)).toMatchObject({ status: 200, body: rpcError(-32_001) })
  const socket = await editor(KEY)
  expect(await ask(socket, 'session/load', { sessionId: id(), cwd: '/', mcpServers: [] })).toMatchObject({
    error: { code: -32_002 },
  })
  socket.close()
})

let asked = 0

async function ask(socket: SocketClient, method: string, params: object) {
  const now = ++asked
  socket.say({ jsonrpc: '2.0', id: now, method, params })
  return await socket.until((frame) => frame.id === now && frame.method === undefined)
}

async function editor(key: string): Promise<SocketClient> {
  const socket = await connect(server.url, '/acp', { headers: { authorization: `Bearer ${key}` } })
  await ask(socket, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
  return socket
}

test('an editor whose key may not do it has to authenticate, and the server has not failed', async () => {
  const { key } = (await server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })).body
  const { body } = await server.call('POST', '/conversations', { profile: 'default' })
  const socket = await editor(key)
  const session = { sessionId: body.id, cwd: body.workdir, mcpServers: [] }
  expect(await ask(socket, 'session/load', session)).toHaveProperty('result')
  const refused = { error: { code: -32_000, data: { code: 'forbidden' } } }
  expect(await ask(socket, 'session/new', { cwd: body.workdir, mcpServers: [] })).toMatchObject(refused)
  const prompt = [{ type: 'text', text: 'Hello' }]
  expect(await ask(socket, 'session/prompt', { sessionId: body.id, prompt })).toMatchObject(refused)
  expect(await ask(socket, 'session/set_mode', { sessionId: body.id, modeId: 'bypass' })).toMatchObject(refused)
  socket.close()
})

test('an editor uses the session that it has opened by the same id, also in capital letters', async () => {
  const { body } = await server.call('POST', '/conversations', { profile: 'default' })
  const sessionId = body.id.toUpperCase()
  const socket = await editor(KEY)
  expect(await ask(socket, 'session/load', { sessionId, cwd: body.workdir, mcpServers: [] })).toHaveProperty('result')
  expect(await ask(socket, 'session/set_mode', { sessionId, modeId: 'plan' })).toHaveProperty('result')
  socket.close()
})
