/** The MCP server of `/mcp`, as the client of the protocol's SDK uses it, on a real server. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { AgentReport } from '../../src/protocols/mcp/agent-report.ts'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const STREAMS = 4
const env = { OPENHANDS_MAX_STREAMS_PER_CONVERSATION: String(STREAMS) }
const stage = await setStageHere(({ body }) => turnFor(body), env)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { llm_config: LLM })
await server.call('PUT', '/profiles/review', { llm_config: LLM, permission_mode: 'plan' })

const textIn = ({ content }: { content?: unknown }) => (typeof content === 'string' ? content : JSON.stringify(content))

/** What the scripted model does with the last message of the user, or with the result of its call. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = textIn(last ?? {})
  if (last?.role === 'tool') return { text: 'It is done.' }
  const [command] = /touch \w+/.exec(said) ?? []
  if (command) return { calls: [{ name: 'Bash', arguments: { command } }] }
  if (said.includes('slowly')) return { text: 'and so on '.repeat(400), chunk_delay_ms: 60 }
  return { text: `Heard: ${/hello \w+/.exec(said)?.[0] ?? 'nothing'}` }
}

type Era = '2026' | '2025'

/** Clients of 2025 begin with `initialize`, those of 2026 send what they are with each message. */
async function connect(key = KEY, era: Era = '2026'): Promise<Client> {
  const versionNegotiation = era === '2026' ? { mode: 'auto' as const } : { mode: 'legacy' as const }
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }))
  return client
}

async function call(client: Client, name: string, args: Record<string, unknown>) {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args })
  const [first] = content
  const text = first?.type === 'text' ? first.text : ''
  return { text, isError, report: structuredContent as AgentReport }
}

async function keyWith(fields: object): Promise<string> {
  const { body, status } = await server.call('POST', '/keys', { name: 'agents', ...fields })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.key
}

async function post(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status: response.status, headers: response.headers, body: json === '' ? undefined : JSON.parse(json) }
}

const all = await connect()
afterAll(() => all.close())

test.each(['2026', '2025'] as const)(
  'a client of the protocol of %s starts an agent, decides with the hash of its call, and continues it',
  async (era) => {
    const client = await connect(KEY, era)
    const started = await call(client, 'start_agent', { prompt: `touch of${era}` })
    const { conversation_id, status, pending } = started.report
    expect(started.text.split('\n')[0]).toBe(`Conversation ${conversation_id}: ${status}`)
    expect(pending).toMatchObject([{ name: 'Bash', input: { command: `touch of${era}` } }])
    const { request_id, tool_use_id, input_hash } = pending[0]!
    const decision = { conversation_id, request_id, tool_use_id, behavior: 'allow' }
    const wrong = await call(client, 'decide', { ...decision, input_hash: '0'.repeat(64) })
    expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining('input_changed') })
    const decided = await call(client, 'decide', { ...decision, input_hash })
    expect(decided.report).toMatchObject({ status: 'idle', final_text: 'It is done.', pending: [] })
    const { body: view } = await server.call('GET', `/conversations/${conversation_id}`)
    await access(join(view.workdir, `of${era}`))
    const continued = await call(client, 'continue_agent', { conversation_id, prompt: 'hello again' })
    expect(continued.report.final_text).toBe('Heard: hello again')
    await client.close()
  },
)

test('a request that stops waiting does not stop the agent, and gets progress before', async () => {
  const progress: unknown[] = []
  const leaving = new AbortController()
  const external_id = crypto.randomUUID()
  const { body } = await server.call('POST', '/conversations', { profile: 'default', external_id })
  const args = { conversation_id: body.id, prompt: 'slowly', wait_seconds: 45 }
  const calling = all.callTool(
    { name: 'continue_agent', arguments: args },
    {
      signal: leaving.signal,
      onprogress: (each) => {
        progress.push(each)
        leaving.abort()
      },
    },
  )
  await expect(calling).rejects.toThrow()
  expect(progress).not.toEqual([])
  const seen = await call(all, 'get_agent', { conversation_id: body.id, wait_seconds: 0 })
  expect(seen.report.status).toBe('running')
  expect(seen.text.split('\n')[0]).toBe(`Conversation ${body.id}: running`)
  // What comes while it works is read by it.
  const steered = await call(all, 'continue_agent', {
    conversation_id: body.id,
    prompt: 'hello there',
    wait_seconds: 0,
  })
  expect(steered.report.status).toBe('running')
  expect((await call(all, 'stop_agent', { conversation_id: body.id })).report.status).toBe('paused')
})

test('an agent that was taken back reports the run before', async () => {
  const { conversation_id } = (await call(all, 'start_agent', { prompt: 'hello first' })).report
  const path = `/conversations/${conversation_id}`
  const end = async (): Promise<number> => (await server.call('GET', path)).body.last_seq
  const to_seq = await end()
  await call(all, 'continue_agent', { conversation_id, prompt: 'hello second' })
  await server.call('POST', `${path}/rewind`, { to_seq, last_seq: await end() })
  expect((await call(all, 'get_agent', { conversation_id, wait_seconds: 0 })).report.final_text).toBe(
    'Heard: hello first',
  )
})

test('an answer comes after wait_seconds, which are at most 45', async () => {
  const started = await call(all, 'start_agent', { prompt: 'slowly', wait_seconds: 0.2 })
  expect(started.report.status).toBe('running')
  const { conversation_id } = started.report
  expect(await call(all, 'get_agent', { conversation_id, wait_seconds: 46 })).toMatchObject({ isError: true })
  await call(all, 'stop_agent', { conversation_id })
})

test('a wrong key is 401 and a key without the scope read 403, as errors of JSON-RPC', async () => {
  const list = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} }
  const wrong = await post(list, { authorization: 'Bearer wrong' })
  expect(wrong).toMatchObject({ status: 401, body: { jsonrpc: '2.0', error: { data: { error: 'unauthorized' } } } })
  expect(wrong.headers.get('www-authenticate')).toContain('Bearer')
  const writer = await keyWith({ scopes: ['write'] })
  expect(await post(list, { authorization: `Bearer ${writer}` })).toMatchObject({
    status: 403,
    body: { jsonrpc: '2.0', error: { code: -32000, message: expect.stringContaining('read') } },
  })
  expect((await post(list, { authorization: '' })).status).toBe(401)
})

test('a key without the scope approve decides nothing, and one without write starts nothing', async () => {
  const { report } = await call(all, 'start_agent', { prompt: 'touch unapproved' })
  const { conversation_id, pending } = report
  const { request_id, tool_use_id, input_hash } = pending[0]!
  const decision = { conversation_id, request_id, tool_use_id, input_hash }
  const writer = await connect(await keyWith({ scopes: ['read', 'write'] }))
  for (const behavior of ['allow', 'deny'])
    expect(await call(writer, 'decide', { ...decision, behavior })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^forbidden: .*approve/),
    })
  const reader = await connect(await keyWith({ scopes: ['read'] }))
  const { items } = (await server.call('GET', '/conversations')).body
  for (const [name, args] of [
    ['start_agent', { prompt: 'hello' }],
    ['continue_agent', { conversation_id, prompt: 'hello' }],
    ['stop_agent', { conversation_id }],
  ] as const)
    expect(await call(reader, name, args)).toMatchObject({ isError: true, text: expect.stringMatching(/^forbidden/) })
  expect((await server.call('GET', '/conversations')).body.items).toHaveLength(items.length)
  expect((await call(reader, 'get_agent', { conversation_id })).report.pending).toHaveLength(1)
  await Promise.all([writer.close(), reader.close()])
})

test('a decision counts once: a replay changes nothing, and the opposite is refused', async () => {
  const { report } = await call(all, 'start_agent', { prompt: 'touch once' })
  const { conversation_id, pending } = report
  const { request_id, tool_use_id, input_hash } = pending[0]!
  const decision = { conversation_id, request_id, tool_use_id, input_hash }
  expect((await call(all, 'decide', { ...decision, behavior: 'allow' })).report.status).toBe('idle')
  const { last_seq } = (await server.call('GET', `/conversations/${conversation_id}`)).body
  expect((await call(all, 'decide', { ...decision, behavior: 'allow' })).report.seq).toBe(last_seq)
  expect(await call(all, 'decide', { ...decision, behavior: 'deny' })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^already_answered/),
  })
})

test('a key sees no agents of other users and profiles, and starts none with a directory or another profile', async () => {
  const { report } = await call(all, 'start_agent', { prompt: 'touch hidden' })
  const { conversation_id, pending } = report
  const { request_id, tool_use_id, input_hash } = pending[0]!
  const scopes = ['read', 'write', 'approve']
  const keys = [{ user_id: 'ada' }, { profiles: ['review'] }, { conversations: [crypto.randomUUID()] }]
  for (const limits of keys) {
    const limited = await connect(await keyWith({ scopes, ...limits }))
    const unknown = await call(limited, 'get_agent', { conversation_id: crypto.randomUUID() })
    for (const [name, args] of [
      ['get_agent', { wait_seconds: 0 }],
      ['continue_agent', { prompt: 'hello' }],
      ['stop_agent', {}],
      ['decide', { request_id, tool_use_id, input_hash, behavior: 'allow' }],
    ] as const) {
      const { isError, text } = await call(limited, name, { conversation_id, ...args })
      const otherId = /[0-9a-f-]{36}/
      expect({ isError, text: text.replace(otherId, '') }).toEqual({
        isError: true,
        text: unknown.text.replace(otherId, ''),
      })
    }
    const refused = { isError: true, text: expect.stringMatching(/^(forbidden|profile_not_found)/) }
    expect(await call(limited, 'start_agent', { prompt: 'hello', workdir: server.home })).toMatchObject(refused)
    if ('profiles' in limits) expect(await call(limited, 'start_agent', { prompt: 'hello' })).toMatchObject(refused)
    await limited.close()
  }
  expect((await call(all, 'get_agent', { conversation_id, wait_seconds: 0 })).report.pending).toHaveLength(1)
})

test('an agent has the profile that is named and the mode of that, and an unknown one is refused', async () => {
  const limited = await connect(await keyWith({ scopes: ['read', 'write'], profiles: ['review'] }))
  const { report } = await call(limited, 'start_agent', { prompt: 'hello you', profile: 'review' })
  expect(report.final_text).toBe('Heard: hello you')
  const { body } = await server.call('GET', `/conversations/${report.conversation_id}`)
  expect(body).toMatchObject({ profile: 'review', state: { permission_mode: 'plan' } })
  expect(await call(all, 'start_agent', { prompt: 'hello', profile: 'missing' })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^profile_not_found/),
  })
  await limited.close()
})

test('wrong versions, batches, broken JSON, other types and too large bodies are refused in the form of the protocol', async () => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const refused = (status: number, code: number) => ({ status, body: { jsonrpc: '2.0', error: { code } } })
  expect(await post(list, { 'mcp-protocol-version': '1999-01-01' })).toMatchObject({ status: 400 })
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' }
  expect(await post({ ...list, params: { _meta: meta } })).toMatchObject({ status: 400 })
  expect(await post([list, list])).toMatchObject(refused(400, -32600))
  expect(await post([])).toMatchObject(refused(400, -32600))
  expect(await post('{"jsonrpc": "2.0",')).toMatchObject(refused(400, -32700))
  expect(await post('')).toMatchObject(refused(400, -32700))
  for (const body of [null, 1, true, '"text"', {}, { jsonrpc: '1.0', id: 1, method: 'tools/list' }])
    expect((await post(typeof body === 'string' ? body : JSON.stringify(body))).status).toBe(400)
  expect(await post('x', { 'content-type': 'text/plain' })).toMatchObject(refused(415, -32000))
  const large = { ...list, params: { padding: 'a'.repeat(80 * 1024 ** 2) } }
  expect(await post(large)).toMatchObject(refused(413, -32000))
  expect(await post({ ...list, method: 'no/such' })).toMatchObject({ body: { error: { code: -32601 } } })
})

test('a text that no provider takes is made well-formed, and a blank one is refused', async () => {
  const { body } = await server.call('POST', '/conversations', { profile: 'default' })
  const args = { conversation_id: body.id, prompt: 'hello you \ud800' }
  expect((await call(all, 'continue_agent', args)).report.final_text).toBe('Heard: hello you')
  const { items } = (await server.call('GET', `/conversations/${body.id}/events?types=UserMessage`)).body
  expect(items).toMatchObject([{ content: [{ text: 'hello you \ufffd' }] }])
  for (const prompt of ['', ' \n']) expect(await call(all, 'start_agent', { prompt })).toMatchObject({ isError: true })
})

test('waits are as many as streams of a conversation may be, and further ones report at once', async () => {
  const { report } = await call(all, 'start_agent', { prompt: 'slowly', wait_seconds: 0 })
  const { conversation_id } = report
  const leaving = new AbortController()
  const params = { name: 'get_agent', arguments: { conversation_id, wait_seconds: 45 } }
  const waits: Promise<unknown>[] = []
  let begun = 0
  const options = { signal: leaving.signal, onprogress: () => void begun++ }
  for (let at = 0; at < STREAMS; at++) waits.push(all.callTool(params, options).catch(() => undefined))
  await until('all wait', async () => begun === STREAMS)
  const path = `${server.url}/conversations/${conversation_id}/events/stream`
  expect((await fetch(path, { headers: { authorization: `Bearer ${KEY}` } })).status).toBe(429)
  expect((await call(all, 'get_agent', { conversation_id, wait_seconds: 45 })).report.status).toBe('running')
  leaving.abort()
  await Promise.all(waits)
  // Those that have left are no reason to refuse others.
  await until('a place is free', async () => {
    const reading = new AbortController()
    const { status } = await fetch(path, { headers: { authorization: `Bearer ${KEY}` }, signal: reading.signal })
    reading.abort()
    return status === 200
  })
  await call(all, 'stop_agent', { conversation_id })
})

test('answers, notifications and broken requests get an error or nothing, and start no agent', async () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
  const broken = [
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', method: 'tools/call', params: { name: 'start_agent', arguments: { prompt: 'hello' } } },
    { ...call, id: {}, params: { name: 'start_agent', arguments: { prompt: 'hello' } } },
    { ...call, id: null, params: { name: 'start_agent', arguments: { prompt: 'hello' } } },
    { ...call, params: { name: 'start_agent', arguments: [] } },
    { ...call, params: { name: 'start_agent', arguments: { prompt: 1 } } },
    { ...call, params: { name: 'start_agent', arguments: { prompt: 'hello', wait_seconds: 'long' } } },
    { ...call, params: { name: 'no_such_tool', arguments: {} } },
    { ...call, params: { name: 'get_agent', arguments: { conversation_id: '../../keys' } } },
    { ...call, params: { name: 'get_agent', arguments: { conversation_id: { toString: 1 } } } },
    { ...call, method: 'subscriptions/listen', params: {} },
  ]
  const { count } = (await server.call('GET', '/conversations/count')).body
  for (const message of broken) {
    const { status, body } = await post(message)
    expect(status, JSON.stringify(message)).toBeLessThan(500)
    expect(body?.result?.structuredContent).toBeUndefined()
  }
  expect((await server.call('GET', '/conversations/count')).body.count).toBe(count)
})

test('a connection that is cut stops no agent, whatever it waited for', async () => {
  const count = async (status: string) => (await server.call('GET', `/conversations/count?status=${status}`)).body.count
  const before = await count('running')
  const cutting = new AbortController()
  const params = { name: 'start_agent', arguments: { prompt: 'slowly', wait_seconds: 45 } }
  const headers = { authorization: `Bearer ${KEY}`, accept: 'application/json, text/event-stream' }
  const started = fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    signal: cutting.signal,
  }).then(
    (response) => response.text(),
    () => 'cut',
  )
  await until('the agent works', async () => (await count('running')) === before + 1)
  cutting.abort()
  expect(await started).toBe('cut')
  const { items } = (await server.call('GET', '/conversations?status=running&limit=1')).body
  const seen = await call(all, 'get_agent', { conversation_id: items[0].id, wait_seconds: 0 })
  expect(seen.report.status).toBe('running')
  expect((await call(all, 'stop_agent', { conversation_id: items[0].id })).report.status).toBe('paused')
})

test('there is no stream to open and no session to end', async () => {
  const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(`${server.url}/mcp`, { method, headers })
    expect({ status: response.status, allow: response.headers.get('allow') }).toEqual({ status: 405, allow: 'POST' })
  }
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  }
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(initialize),
  })
  expect(await response.text()).toContain('"agent-server"')
  expect(response.headers.get('mcp-session-id')).toBeNull()
})

test('agents of other protocols are found, and those of this one by the API', async () => {
  const { body } = await server.call('POST', '/conversations', {
    profile: 'default',
    initial_message: 'hello rest',
    run: true,
  })
  const seen = await call(all, 'get_agent', { conversation_id: body.id.toUpperCase() })
  expect(seen.report).toMatchObject({ conversation_id: body.id, status: 'idle', final_text: 'Heard: hello rest' })
})

test('a key that is revoked while its call waits is answered no more', async () => {
  const { body: made } = await server.call('POST', '/keys', { name: 'short', scopes: ['read', 'write'] })
  const short = await connect(made.key)
  const started = await call(short, 'start_agent', { prompt: 'slowly', wait_seconds: 0 })
  const { conversation_id } = started.report
  const waiting = call(short, 'get_agent', { conversation_id, wait_seconds: 45 })
  const ended = expect(
    waiting.then(
      ({ isError }) => isError ?? false,
      () => true,
    ),
  ).resolves.toBe(true)
  await server.call('DELETE', `/keys/${made.id}`)
  await ended
  await until('the agent works on', async () => {
    const { body } = await server.call('GET', `/conversations/${conversation_id}`)
    return body.status === 'running'
  })
  await call(all, 'stop_agent', { conversation_id })
  await short.close()
})

test('a page of an origin that is not allowed is refused, also with a key', async () => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  expect((await post(list, { origin: server.url })).status).toBe(200)
  for (const origin of ['https://evil.example', 'http://localhost:1', 'null'])
    expect(await post(list, { origin })).toMatchObject({
      status: 403,
      body: { jsonrpc: '2.0', error: { data: { error: 'origin_refused' } } },
    })
})

test('a server that stops ends the waits of calls, and another one reports its agents', async () => {
  const { report } = await call(all, 'start_agent', { prompt: 'slowly', wait_seconds: 0 })
  const { conversation_id } = report
  const waiting = call(all, 'get_agent', { conversation_id, wait_seconds: 45 })
  const ended = waiting.catch((error: unknown) => error)
  await server.restart('SIGTERM')
  await ended
  const seen = await call(all, 'get_agent', { conversation_id, wait_seconds: 0 })
  expect(seen.report.conversation_id).toBe(conversation_id)
  await call(all, 'stop_agent', { conversation_id })
})
