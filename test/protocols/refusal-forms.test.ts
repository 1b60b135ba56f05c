/** What every route of a protocol refuses, each in the form of the errors of its protocol. */
import { execFile } from 'node:child_process'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const MAX_BODY_BYTES = 1_000_000
const env = { OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,mcp,acp,a2a', OPENHANDS_MAX_BODY_BYTES: String(MAX_BODY_BYTES) }
const stage = await setStage(
  ({ body }) => {
    const isEndless = JSON.stringify(body.messages.at(-1)).includes('endless')
    return isEndless ? { text: 'and so on '.repeat(600), chunk_delay_ms: 50 } : { text: 'Read.' }
  },
  { env },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { llm_config: LLM })

const keyOf = async (scope: string): Promise<string> =>
  (await server.call('POST', '/keys', { name: scope, scopes: [scope] })).body.key
const READER = await keyOf('read')

type Protocol = {
  readonly path: string
  readonly body: (text: string) => object
  readonly headers?: Record<string, string>
  /** The form of an error. */
  readonly form: object
  /** Of what is no JSON. JSON-RPC has its own code. */
  readonly brokenStatus?: number
}

const id = () => crypto.randomUUID()
const user = (content: string) => ({ id: id(), role: 'user', content })
const said = (text: string) => ({ message: { messageId: id(), role: 'ROLE_USER', parts: [{ text }] } })
const OPENAI = { error: { message: expect.any(String), type: expect.any(String), code: expect.any(String) } }
const RPC = { jsonrpc: '2.0', error: { code: expect.any(Number), message: expect.any(String) } }
const A2A = { 'a2a-version': '1.0' }

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  Responses: { path: '/v1/responses', body: (input) => ({ model: 'default', input }), form: OPENAI },
  'Chat Completions': {
    path: '/v1/chat/completions',
    body: (text) => ({ model: 'default', messages: [user(text)] }),
    form: OPENAI,
  },
  'AI SDK': {
    path: '/ai/chat',
    body: (text) => ({ id: id(), messages: [{ id: id(), role: 'user', parts: [{ type: 'text', text }] }] }),
    form: expect.any(String),
  },
  'AG-UI': {
    path: '/ag-ui/default',
    body: (text) => ({ threadId: id(), runId: id(), messages: [user(text)] }),
    form: { error: expect.any(String), message: expect.any(String) },
  },
  MCP: {
    path: '/mcp',
    body: (prompt) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'start_agent', arguments: { prompt, wait_seconds: 45 } },
    }),
    headers: { accept: 'application/json, text/event-stream' },
    form: RPC,
  },
  'A2A by HTTP': {
    path: '/a2a/v1/message:send',
    body: said,
    headers: A2A,
    form: { error: { code: expect.any(Number), status: expect.any(String), message: expect.any(String) } },
  },
  'A2A by JSON-RPC': {
    path: '/a2a',
    body: (text) => ({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: said(text) }),
    headers: A2A,
    form: RPC,
    brokenStatus: 200,
  },
}
const ROWS = Object.entries(PROTOCOLS).map(([name, protocol]) => ({ name, ...protocol }))

type Sent = {
  readonly body?: string
  readonly key?: string
  readonly type?: string
  readonly method?: string
}

async function send(
  { path, headers }: Pick<Protocol, 'path' | 'headers'>,
  { body, key = KEY, type = 'application/json', method = 'POST' }: Sent,
) {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'content-type': type, ...headers, ...(key !== '' && { authorization: `Bearer ${key}` }) },
    ...(body !== undefined && { body }),
  })
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status: response.status, headers: response.headers, body: json.startsWith('{') ? JSON.parse(json) : json }
}

test.each(ROWS)('$name refuses a request without a key, and with a wrong one', async (protocol) => {
  for (const key of ['', 'wrong']) {
    const refused = await send(protocol, { body: JSON.stringify(protocol.body('Hello')), key })
    expect(refused).toMatchObject({ status: 401, body: protocol.form })
    expect(refused.headers.get('www-authenticate')).toContain('Bearer')
  }
})

test.each(ROWS)('$name starts nothing for a key that may only read', async (protocol) => {
  const count = async () => (await server.call('GET', '/conversations/count')).body.count
  const before = await count()
  const refused = await send(protocol, { body: JSON.stringify(protocol.body('Hello')), key: READER })
  // The key may list the tools: what one of them refuses is its result.
  const isResult = protocol.path === '/mcp'
  const form = isResult
    ? { result: { isError: true, content: [{ text: expect.stringMatching(/^forbidden/) }] } }
    : protocol.form
  expect(refused).toMatchObject({ status: isResult ? 200 : 403, body: form })
  expect(await count()).toBe(before)
})

test.each(ROWS)('$name refuses bodies that are too large, of another type, or no JSON', async (protocol) => {
  const { form, brokenStatus = 400 } = protocol
  const large = JSON.stringify(protocol.body('x'.repeat(MAX_BODY_BYTES)))
  expect(await send(protocol, { body: large })).toMatchObject({ status: 413, body: form })
  expect(await send(protocol, { body: 'x', type: 'text/plain' })).toMatchObject({ status: 415, body: form })
  expect(await send(protocol, { body: '{"a": ' })).toMatchObject({ status: brokenStatus, body: form })
})

test.each(ROWS)('$name refuses routes and methods that it does not have', async (protocol) => {
  const { path, form } = protocol
  for (const method of ['PUT', 'PATCH']) {
    const refused = await send(protocol, { method, body: '{}' })
    expect(refused).toMatchObject({ status: 405, body: form })
    expect(refused.headers.get('allow')).toContain('POST')
  }
  for (const method of ['GET', 'POST', 'DELETE']) {
    const other = { ...protocol, path: `${path}/nothing/is/here` }
    const sent = { method, ...(method === 'POST' && { body: '{}' }) }
    const refused = await send(other, sent)
    expect(refused).toMatchObject({ status: 404, body: form })
    expect(refused.headers.get('allow')).toBeNull()
  }
})

describe('a URL that cannot be decoded is refused in the form of its protocol:', () => {
  test.each([
    ['/v1/%E0%A4%A', OPENAI],
    ['/v1/responses/%', OPENAI],
    ['/ai/chat/%E0%A4%A/stream', expect.any(String)],
    ['/ag-ui/%E0%A4%A', { error: 'invalid_request' }],
    ['/mcp/%', RPC],
    ['/acp/%', RPC],
    ['/a2a/%', RPC],
    ['/a2a/v1/tasks/%E0%A4%A', PROTOCOLS['A2A by HTTP']!.form],
    ['/v1beta/%', { error: 'invalid_request' }],
    ['/conversations/%E0%A4%A', { error: 'invalid_request' }],
  ])('%s', async (path, form) => {
    const { status, headers, body } = await send({ path }, { method: 'GET' })
    expect({ status, body }).toMatchObject({ status: 400, body: form })
    expect(JSON.stringify(body)).toContain('cannot be decoded')
    expect(headers.get('x-request-id')).not.toBeNull()
  })
})

describe('a socket that is refused is refused in the form of its protocol:', () => {
  const handshake = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13' }
  const KEYED = { ...handshake, 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }

  async function refusalOf(path: string, headers: Record<string, string>) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    get(server.url + path, { agent: false, headers: { authorization: `Bearer ${KEY}`, ...headers } }, resolve)
      .on('upgrade', (_, socket) => {
        socket.destroy()
        reject(new Error('the socket was opened'))
      })
      .on('error', reject)
    const response = await promise
    const body = await text(response)
    return {
      status: response.statusCode,
      headers: response.headers,
      body: body.startsWith('{') ? JSON.parse(body) : body,
    }
  }

  test.each([
    ['/acp', RPC],
    ['/v1/responses', OPENAI],
    ['/ai/chat', expect.any(String)],
  ])('%s', async (path, form) => {
    const refusals: [number, Record<string, string>][] = [
      [401, { ...KEYED, authorization: 'Bearer wrong-key-0123456789' }],
      [403, { ...KEYED, origin: 'https://evil.example' }],
      [400, handshake],
      [426, { ...KEYED, 'sec-websocket-version': '8' }],
      [426, {}],
    ]
    for (const [status, headers] of refusals) {
      const refusal = await refusalOf(path, headers)
      expect(refusal).toMatchObject({ status, body: form })
      if (status === 401) expect(refusal.headers['www-authenticate']).toContain('Bearer')
      if (status === 426) expect(refusal.headers.upgrade).toBe('websocket')
    }
  })

  test('/acp for an empty profile, and below it', async () => {
    expect(await refusalOf('/acp?profile=', KEYED)).toMatchObject({ status: 400, body: RPC })
    expect(await refusalOf('/acp/nothing', {})).toMatchObject({ status: 404, body: RPC })
  })
})

/** The body with a field more in each object. */
function withMore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMore)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, each]) => [name, withMore(each)])
  return { ...Object.fromEntries(fields), unknown_field: { a: [1] } }
}

test.each(ROWS)('$name ignores fields that it does not know', async (protocol) => {
  const body: { jsonrpc?: string; params?: unknown } = protocol.body('Hello')
  // A message of JSON-RPC has its own fields.
  const sent = body.jsonrpc === undefined ? withMore(body) : { ...body, params: withMore(body.params) }
  const { status, body: reply } = await send(protocol, { body: JSON.stringify(sent) })
  expect({ status, reply: JSON.stringify(reply) }).toMatchObject({ status: 200 })
  expect(JSON.stringify(reply)).not.toMatch(/"error":(?!null)|"isError":true|RUN_ERROR/)
})

test('the card of A2A refuses other methods in the form of A2A', async () => {
  const { form } = PROTOCOLS['A2A by HTTP']!
  const refused = await send({ path: '/.well-known/agent-card.json' }, { method: 'POST', body: '{}' })
  expect(refused).toMatchObject({ status: 405, body: form })
  expect(refused.headers.get('allow')).toContain('GET')
})

const STREAMS: readonly [string, { readonly path?: string; readonly more?: object }, RegExp][] = [
  ['Responses', { more: { stream: true } }, /"type":"error","code":"CODE"/],
  ['Chat Completions', { more: { stream: true } }, /\{"error":\{.*"code":"CODE"/],
  ['AI SDK', {}, /\{"type":"error","errorText":"(The key|The conversation)/],
  ['AG-UI', {}, /"type":"RUN_ERROR".*"code":"CODE"/],
  ['MCP', {}, /"code":-32000.*"error":"CODE"|"isError":true/],
  ['A2A by HTTP', { path: '/a2a/v1/message:stream' }, /"error":\{.*"reason":"(UNAUTHORIZED|TASK_NOT_FOUND)"/],
]

describe.each(STREAMS)('a stream of %s', (name, { path, more }, form) => {
  /** Returns what it has sent after `end` was called in the middle of it. */
  async function lastWords(end: (begun: { keyId: string; conversationId: string }) => Promise<unknown>) {
    const user_id = id()
    const { key, id: keyId } = (await server.call('POST', '/keys', { name, scopes: ['read', 'write'], user_id })).body
    const protocol = PROTOCOLS[name]!
    const response = await fetch(server.url + (path ?? protocol.path), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-conversation-id': id(),
        ...protocol.headers,
      },
      body: JSON.stringify({ ...protocol.body('endless'), ...more }),
    })
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
    const text = response.text()
    const [{ id: conversationId }] = await until('the answer', async () => {
      const { items } = (await server.call('GET', `/conversations?user_id=${user_id}`)).body
      return items[0]?.status === 'running' && items
    })
    await end({ keyId, conversationId })
    const sent = await text
    await server.call('DELETE', `/conversations/${conversationId}`)
    return sent.trimEnd().split('\n').at(-1)!
  }

  test('ends with an error when its key ends', async () => {
    const last = await lastWords(async ({ keyId }) => await server.call('DELETE', `/keys/${keyId}`))
    expect(last).toMatch(new RegExp(form.source.replace('CODE', '(unauthorized|invalid_api_key)')))
  })

  test('ends with an error when its conversation is deleted, which says so', async () => {
    const last = await lastWords(
      async ({ conversationId }) => await server.call('DELETE', `/conversations/${conversationId}`),
    )
    expect(last).toMatch(new RegExp(form.source.replace('CODE', 'conversation_deleted')))
    expect(last).toMatch(/deleted/)
  })
})

test('a full disk is an error of each protocol, and each works when there is room', async () => {
  const limit = async (bytes: number | 'unlimited') =>
    await promisify(execFile)('prlimit', ['--pid', String(server.pid), `--fsize=${bytes}:`])
  const text = 'x'.repeat(200_000)
  await limit(64 * 1024)
  for (const protocol of ROWS) {
    const { status, headers, body } = await send(protocol, { body: JSON.stringify(protocol.body(text)) })
    const isResult = protocol.path === '/mcp'
    const form = isResult
      ? { result: { isError: true, content: [{ text: expect.stringMatching(/^storage_full/) }] } }
      : protocol.form
    expect({ name: protocol.name, status, body }).toMatchObject({ status: isResult ? 200 : 507, body: form })
    expect(headers.get('retry-after')).toBeNull()
  }
  await limit('unlimited')
  for (const protocol of ROWS) {
    const { status } = await send(protocol, { body: JSON.stringify(protocol.body(text)) })
    expect({ name: protocol.name, status }).toMatchObject({ status: 200 })
  }
})
