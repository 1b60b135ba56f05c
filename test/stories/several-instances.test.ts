/** Two servers on one real database: what a client sees through either of them. */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rightsHeader } from '../../src/cluster/rights.ts'
import { Access } from '../../src/access/access.ts'
import { OauthServer } from '../mcp/children/oauth-server.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const script = {
  replies: [
    { when: 'Look it up', turns: [{ calls: [{ name: 'look_up', arguments: {} }] }, { text: 'Done.' }] },
    { when: 'long', turns: [bash('sleep 1000'), { text: 'Done.' }] },
    { turns: [bash('echo one > note.txt; cat note.txt'), { text: 'Done.' }] },
  ],
}

let database: TestDatabase
let stage: Stage
let owner: TestServer
let asked: TestServer
let clusterPort: number

const envOf = (port: number) => ({
  OPENHANDS_DATABASE_URL: database.url,
  OPENHANDS_CLUSTER_LISTEN: `127.0.0.1:${port}`,
  OPENHANDS_ISOLATION: 'none',
  OPENHANDS_MCP_ALLOW: '127.0.0.1',
})

beforeAll(async () => {
  database = await createDatabase()
  clusterPort = await freePort()
  stage = await setStage(script, { env: envOf(clusterPort) })
  owner = stage.server
  asked = await startServer({ env: envOf(0) })
})
afterAll(async () => {
  await asked[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const create = async (server = owner, settings: object = {}) => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body } = await server.call('POST', '/conversations', { llm_config, ...settings })
  return `/conversations/${body.id}`
}

const authorization = `Bearer ${KEY}`

test('a run, its events and its views through another instance are those of the owner', async () => {
  const path = await create()
  const message = { role: 'user', content: 'Do it.' }
  expect((await asked.call('POST', `${path}/messages`, { message })).status).toBe(202)
  const run = await asked.call('POST', `${path}/run`, { wait: true })
  expect(run.body.result.stop_reason).toBe('completed')
  for (const read of ['', '/events?limit=100', '/requests', '/files', '/nothing']) {
    const [there, here] = [await owner.call('GET', path + read), await asked.call('GET', path + read)]
    expect([read, here.status, here.body]).toEqual([read, there.status, there.body])
  }
})

test('responses of the OpenAI API are read, continued and deleted through another instance', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await owner.call('PUT', '/profiles/gateway', { llm_config, permission_mode: 'bypass' })
  const ask = async (server: TestServer, more: object = {}) =>
    await server.call('POST', '/v1/responses', { model: 'gateway', input: 'Hello', ...more })
  const first = await ask(owner)
  expect([first.status, first.body.status], JSON.stringify(first.body)).toEqual([200, 'completed'])
  const path = `/v1/responses/${first.body.id}`
  for (const read of ['', '/input_items']) {
    const [there, here] = [await owner.call('GET', path + read), await asked.call('GET', path + read)]
    expect([read, here.status, here.body]).toEqual([read, 200, there.body])
  }
  const second = await ask(asked, { previous_response_id: first.body.id })
  expect([second.status, second.body.status], JSON.stringify(second.body)).toEqual([200, 'completed'])
  expect(second.body.id.slice(0, 37)).toBe(first.body.id.slice(0, 37))
  const headers = { authorization, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'gateway', input: 'Hello', stream: true, previous_response_id: second.body.id })
  const streamed = await (await fetch(`${asked.url}/v1/responses`, { method: 'POST', headers, body })).text()
  expect(streamed).toContain('event: response.completed')
  const last = /"id":"(resp_[^"]+)"/.exec(streamed)?.[1]
  const cancelled = await asked.call('POST', `/v1/responses/${last}/cancel`)
  expect(cancelled.body.status).toBe('completed')
  expect((await asked.call('DELETE', `/v1/responses/${last}`)).body).toMatchObject({ deleted: true })
  expect((await owner.call('GET', path)).status).toBe(404)
})

test('an output that only names its call is taken to the owner, whichever instance gets it', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await owner.call('PUT', '/profiles/calling', { llm_config, permission_mode: 'bypass' })
  const tools = [{ type: 'function', name: 'look_up', parameters: { type: 'object' } }]
  const request = { model: 'calling', tools }
  const begun = await owner.call('POST', '/v1/responses', { ...request, input: 'Look it up.' })
  const call = begun.body.output.find(({ type }: { type: string }) => type === 'function_call')
  const output = { type: 'function_call_output', call_id: call?.call_id, output: 'found' }
  const answered = await asked.call('POST', '/v1/responses', { ...request, input: [...begun.body.output, output] })
  expect([answered.status, answered.body.status], JSON.stringify(answered.body)).toEqual([200, 'completed'])
})

test('a conversation of the OpenAI API is continued, read and deleted through another instance', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await owner.call('PUT', '/profiles/talk', { llm_config, permission_mode: 'bypass' })
  const { body: made } = await owner.call('POST', '/v1/conversations', { model: 'talk' })
  const path = `/v1/conversations/${made.id}`
  const items = [{ role: 'user', content: 'First' }]
  expect((await asked.call('POST', `${path}/items`, { items })).body.data).toMatchObject([{ role: 'user' }])
  const said = await asked.call('POST', '/v1/responses', { model: 'talk', conversation: made.id, input: 'Hello' })
  expect(said.body, JSON.stringify(said.body)).toMatchObject({ status: 'completed', conversation: { id: made.id } })
  for (const read of [path, `${path}/items`]) {
    const [there, here] = [await owner.call('GET', read), await asked.call('GET', read)]
    expect([read, here.status, here.body]).toEqual([read, 200, there.body])
  }
  expect((await asked.call('DELETE', path)).body).toMatchObject({ deleted: true })
  expect((await owner.call('GET', path)).status).toBe(404)
})

test('a thread of Chat Completions is continued through another instance', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await owner.call('PUT', '/profiles/chat', { llm_config, permission_mode: 'bypass' })
  const thread = { 'X-Conversation-Id': 'shared' }
  const messages: object[] = []
  const say = async (server: TestServer, content: string) => {
    messages.push({ role: 'user', content })
    const { body } = await server.call('POST', '/v1/chat/completions', { model: 'chat', messages }, thread)
    expect(body.choices, JSON.stringify(body)).toMatchObject([{ finish_reason: 'stop' }])
    messages.push(body.choices[0].message)
    return body.id.replace(/_\d+$/, '')
  }
  const first = await say(owner, 'Hello')
  expect(await say(asked, 'Hello again')).toBe(first)
  expect(await say(owner, 'And again')).toBe(first)
})

test('a browser that comes back to another instance authorizes the MCP server of the conversation, once', async () => {
  await using oauth = await OauthServer.start()
  const mcp = { mcpServers: { safe: { url: oauth.mcpUrl('plain') } } }
  const id = await stage.create({ mcp })
  await stage.say(id, 'nothing')
  const view = async () => (await asked.call('GET', `/conversations/${id}/mcp`)).body.items[0]
  // A run waits for a slow connection for some seconds only.
  const page = await until('the page of the authorization', async () => (await view()).authorization_url as string)
  const agreed = await fetch(page, { redirect: 'manual' })
  const { pathname, search } = new URL(agreed.headers.get('location') ?? '')
  const back = await fetch(asked.url + pathname + search)
  expect([back.status, await back.text()]).toEqual([200, expect.stringContaining('is authorized')])
  expect(await view()).toMatchObject({ status: 'connected' })
  const again = await fetch(asked.url + pathname + search)
  expect([again.status, await again.json()]).toMatchObject([409, { error: 'mcp_authorization_failed' }])
})

test('tools of the MCP server reach agents of another instance', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await owner.call('PUT', '/profiles/tools', { llm_config, permission_mode: 'bypass' })
  const ask = async (server: TestServer, name: string, args: object) => {
    const params = { name, arguments: args }
    const accept = { accept: 'application/json, text/event-stream' }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    const headers = { authorization, 'content-type': 'application/json', ...accept }
    const response = await fetch(`${server.url}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) })
    const [, data = ''] = /^data: (.*)$/m.exec(await response.text()) ?? []
    return JSON.parse(data).result.structuredContent
  }
  const { conversation_id } = await ask(owner, 'start_agent', { prompt: 'Hello', profile: 'tools' })
  const continued = await ask(asked, 'continue_agent', { conversation_id, prompt: 'Hello again' })
  expect(continued).toMatchObject({ conversation_id, status: 'idle' })
  expect(await ask(asked, 'get_agent', { conversation_id })).toEqual(continued)
  expect(await ask(owner, 'get_agent', { conversation_id })).toEqual(continued)
})

test('uploads and downloads through another instance keep their bytes, also with Expect: 100-continue', async () => {
  const path = await create()
  const bytes = randomBytes(3_000_000)
  const headers = { authorization, expect: '100-continue', 'content-length': bytes.length }
  const put = request(`${asked.url}${path}/files/large.bin`, { method: 'PUT', headers })
  put.once('continue', () => put.end(bytes))
  put.flushHeaders()
  const [answer] = (await once(put, 'response')) as [IncomingMessage]
  answer.resume()
  expect(answer.statusCode).toBe(201)
  const got = await fetch(`${asked.url}${path}/files/large.bin`, { headers: { authorization } })
  expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true)
})

test('the owner ends a forwarded stream when its client leaves, and no handler runs at the asked instance', async () => {
  const path = await create()
  const controller = new AbortController()
  const headers = { authorization, accept: 'text/event-stream' }
  const response = await fetch(`${asked.url}${path}/events/stream`, { headers, signal: controller.signal })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  const endedStreams = () => owner.output().split('"route":"/conversations/:id/events/stream"').length
  const before = endedStreams()
  controller.abort()
  await until('the end of the stream at the owner', async () => endedStreams() > before)
  expect(asked.output()).not.toContain('already sent')
})

test('one of two equal creates at two instances is executed, and repetitions get its answer at both', async () => {
  const body = {
    title: 'once',
    llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'a-model-key' },
  }
  const at = async (server: TestServer, key: string, fields: object = {}) =>
    await server.call('POST', '/conversations', { ...body, ...fields }, { 'idempotency-key': key })
  for (const key of ['race-1', 'race-2', 'race-3', 'race-4']) {
    const racing = await Promise.all([at(owner, key), at(asked, key)])
    const made = racing.filter(({ status }) => status === 201)
    expect(made.length).toBeGreaterThan(0)
    for (const answer of racing)
      if (answer.status !== 201) expect([answer.status, answer.body.error]).toEqual([409, 'idempotency_in_flight'])
    for (const server of [owner, asked]) {
      expect(await at(server, key)).toMatchObject({ status: 201, body: { id: made[0]!.body.id } })
      const other = await at(server, key, { title: 'other' })
      expect([other.status, other.body.error]).toEqual([422, 'idempotency_mismatch'])
    }
  }
  const { items } = (await asked.call('GET', '/conversations?limit=100')).body
  expect(items.filter(({ title }: { title: string }) => title === 'once')).toHaveLength(4)
  // What fails leaves the key free.
  expect((await at(owner, 'again', { workdir: '/proc/nothing' })).status).toBe(400)
  expect((await at(asked, 'again')).status).toBe(201)
})

test('a limited key has the same rights through another instance, which alone writes the audit line', async () => {
  const path = await create()
  const key = await asked.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const headers = { authorization: `Bearer ${key.body.key}` }
  expect((await asked.call('GET', path, undefined, headers)).status).toBe(200)
  expect((await asked.call('DELETE', path, undefined, headers)).status).toBe(403)
  expect((await asked.call('DELETE', path)).status).toBe(204)
  const deletionsIn = (server: TestServer) =>
    server
      .output()
      .split('\n')
      .filter((line) => ['"msg":"audit"', '"DELETE"', path.split('/').at(-1)!].every((part) => line.includes(part)))
  await until('the audit lines', async () => deletionsIn(asked).length === 2)
  expect(deletionsIn(owner)).toEqual([])
})

test('a key for many conversations has its rights through another instance, also with long headers', async () => {
  const [path, other] = [await create(), await create()]
  const conversations = [path.slice('/conversations/'.length), ...Array.from({ length: 199 }, () => randomUUID())]
  const key = await asked.call('POST', '/keys', { name: 'reader', scopes: ['read'], conversations })
  const headers = { authorization: `Bearer ${key.body.key}`, cookie: 'c'.repeat(8000) }
  expect((await asked.call('GET', path, undefined, headers)).status).toBe(200)
  expect((await asked.call('GET', other, undefined, headers)).status).toBe(404)
})

test('a key that one instance revokes ends at the other one, with its streams', async () => {
  const path = await create()
  const { body } = await asked.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const headers = { authorization: `Bearer ${body.key}` }
  const stream = await fetch(`${owner.url}${path}/events/stream`, {
    headers: { ...headers, accept: 'text/event-stream' },
  })
  expect(stream.status).toBe(200)
  expect((await asked.call('DELETE', `/keys/${body.id}`)).status).toBe(204)
  // Otherwise it would go on for as long as the test.
  await stream.text()
  expect((await owner.call('GET', path, undefined, headers)).status).toBe(401)
})

test('the header of another instance gives no rights on the public address', async () => {
  const path = await create()
  const forged = rightsHeader({ fingerprint: 'forged', access: Access.master() })
  expect((await owner.call('GET', path, undefined, { authorization: forged })).status).toBe(401)
})

test('the address for instances answers no request that has the master key and not the key of the cluster', async () => {
  const path = await create()
  const socket = connect(clusterPort, '127.0.0.1')
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`.padEnd(200, ' '))
  await new Promise((resolve) => socket.once('close', resolve))
  expect(received.toString('latin1')).not.toContain('HTTP/1.1')
})

test('an instance that starts lists what another one works on with its status; when it stands still, it is owner_lost', async () => {
  const path = await create()
  await owner.call('POST', `${path}/messages`, { message: { role: 'user', content: 'Take long.' }, run: true })
  const status = async (server: TestServer) => (await server.call('GET', path)).body.status
  await until('a running call', async () => (await status(owner)) === 'running')
  await using later = await startServer({ env: envOf(0) })
  const itsPath = await create(later)
  for (const list of ['/conversations/summaries', '/conversations']) {
    const { body } = await later.call('GET', list)
    const found = body.items.find(({ id }: { id: string }) => path.endsWith(id))
    expect([list, found?.status]).toEqual([list, 'running'])
  }
  expect(later.output()).not.toContain('"level":"error"')
  expect((await owner.call('POST', `${path}/pause`, {})).status).toBe(200)

  // It stands still: a request to it is 503 owner_lost once it has been declared dead.
  // Its connection is open, and the system goes on answering it.
  expect((await asked.call('GET', itsPath)).status).toBe(200)
  process.kill(later.pid, 'SIGSTOP')
  const lost = await asked.call('POST', `${itsPath}/run`, {})
  expect([lost.status, lost.body.error]).toEqual([503, 'owner_lost'])
})

// The last one: it ends the owner.
test('a request whose owner has died is 503 owner_lost and is not repeated; then another instance takes its work over', async () => {
  const idle = await create()
  const [path, resuming] = [await create(), await create(owner, { resume_on_start: true })]
  const eventsAt = async (server: TestServer, at = path) =>
    (await server.call('GET', `${at}/events?limit=100`)).body.items
  for (const at of [path, resuming]) {
    await owner.call('POST', `${at}/messages`, { message: { role: 'user', content: 'Take long.' }, run: true })
    await until('a running call', async () => (await eventsAt(owner, at)).some(({ type }: Typed) => type === 'ToolUse'))
  }
  const acknowledged = await eventsAt(owner)
  await owner.stop('SIGKILL')
  // A run continues at the instance that a client asks at once.
  const isResumed = async () => (await asked.call('GET', resuming)).body.status === 'idle'
  const [lost] = await Promise.all([asked.call('POST', `${idle}/run`, {}), until('the end of the run', isResumed)])
  expect([lost.status, lost.body.error]).toEqual([503, 'owner_lost'])
  const { items } = (await asked.call('GET', `${resuming}/events?types=Result&limit=100`)).body
  expect(items.map((each: { stop_reason: string }) => each.stop_reason)).toEqual(['owner_lost', 'completed'])

  const isOver = async () => (await asked.call('GET', path)).body.status === 'paused'
  await until('the other instance to take it over', isOver)
  const events = await eventsAt(asked)
  expect(events.slice(0, acknowledged.length)).toEqual(acknowledged)
  expect(events.map(({ seq }: Typed) => seq)).toEqual(events.map((_: unknown, index: number) => index + 1))
  expect(events.filter(({ type }: Typed) => type === 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
  expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'paused', reason: 'owner_lost' })
  expect(events.filter(({ type }: Typed) => type === 'Result')).toMatchObject([{ stop_reason: 'owner_lost' }])
  const { body } = await asked.call('GET', '/conversations/summaries')
  expect(body.items.map(({ id }: { id: string }) => id)).toContain(path.split('/').at(-1))
  // At rest, it was no work for anybody: the first request opens it, although it was created after the start.
  expect((await asked.call('GET', idle)).status).toBe(200)
  const metrics = await (await fetch(`${asked.url}/metrics`, { headers: { authorization } })).text()
  const valueOf = (series: string) =>
    Number(
      metrics
        .split('\n')
        .find((line) => line.startsWith(`agent_server_${series} `))
        ?.split(' ')[1],
    )
  expect(valueOf('takeovers_total')).toBeGreaterThan(0)
  expect(valueOf('forwards_total{outcome="answered"}')).toBeGreaterThan(0)
  expect(valueOf('forwards_total{outcome="failed"}')).toBeGreaterThan(0)
  expect(valueOf('database_seconds_count{kind="append"}')).toBeGreaterThan(0)
  expect([valueOf('suspensions_total'), valueOf('fenced_appends_total')]).not.toContain(NaN)
})

type Typed = { readonly type: string; readonly seq: number }
