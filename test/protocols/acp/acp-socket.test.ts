/** The WebSocket `/acp`, as programs use it: the clients of the protocol's own SDK, with keys of few and of many rights. */
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import type { Stream } from '@agentclientprotocol/sdk'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { BodyOf } from '../../../src/client/client.ts'
import { createClient } from '../../../src/client/client.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { Editor } from '../../cli/acp/support/editor.ts'
import { EditorV2, isState } from '../../cli/acp/support/editor-v2.ts'
import { shownIn } from '../../cli/acp/support/shown.ts'
import { shownInV2 } from '../../cli/acp/support/shown-v2.ts'
import type { TestServer } from '../../support/server.ts'
import { KEY } from '../../support/server.ts'
import { startServerHere } from '../../support/server-here.ts'
import { connect, connectAs, connectAsBrowser } from '../../support/socket.ts'
import { until } from '../../support/until.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]

let home: string
let model: ScriptedModel
let server: TestServer

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-acp-')))
  model = await startScriptedModel({
    replies: [
      { when: 'hello', turns: [{ reasoning: 'They greet.', text: 'Hello there.' }] },
      { when: 'write', turns: [{ text: 'I write.', calls: bash('echo hi >> out.txt') }, { text: 'It is written.' }] },
      { when: 'wait', turns: [{ calls: bash('while [ ! -e go ]; do sleep 0.05; done') }, { text: 'It is there.' }] },
    ],
  })
  const llm = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'scripted-model-key' }
  server = await startServerHere({ ...llm, OPENHANDS_WORKDIR_BASE: home })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

const streamWith = (key = KEY, query = ''): Stream =>
  createWebSocketStream(`${server.url.replace('http', 'ws')}/acp${query}`, {
    headers: { authorization: `Bearer ${key}` },
    WebSocket,
  })
const first = async (key?: string) => await Editor.over(streamWith(key))
const second = async (key?: string, query?: string) => await EditorV2.over(streamWith(key, query))
const client = (apiKey = KEY) => createClient({ baseUrl: server.url, apiKey })
const keyWith = async (body: Omit<BodyOf<'createKey'>, 'name'>) =>
  (await client().keys.create({ name: 'editor', ...body })).key
const newDirectory = () => join(home, crypto.randomUUID())
const allow = async () => ({ outcome: { outcome: 'selected' as const, optionId: 'allow_once' } })

describe('with either version', () => {
  test('a prompt is answered, an approval is asked for, and the session is replayed as it was shown', async () => {
    await using one = await first()
    const cwd = newDirectory()
    const { sessionId: id } = await one.agent.request('session/new', { cwd, mcpServers: [] })
    one.onPermission = allow
    expect(await one.prompt(id, 'hello')).toEqual({ stopReason: 'end_turn' })
    expect(await one.prompt(id, 'write')).toEqual({ stopReason: 'end_turn' })
    expect(await readFile(join(cwd, 'out.txt'), 'utf8')).toBe('hi\n')

    await using two = await second()
    await two.resume(id, cwd, { type: 'start' })
    const texts = shownIn(one.of(id)).map(({ text, call }) => text ?? call?.title)
    const replayed = shownInV2(two.of(id))
    expect(replayed.filter(({ kind }) => kind !== 'user').map(({ text, title }) => text ?? title)).toEqual(texts)
    two.onPermission = allow
    expect(await two.prompt(id, 'write')).toMatchObject({ stopReason: 'end_turn' })
    const live = shownInV2(two.of(id))

    await using again = await second()
    await again.resume(id, cwd, { type: 'start' })
    expect(shownInV2(again.of(id))).toEqual(live)
    expect((await again.agent.request('session/list', { cwd })).sessions).toMatchObject([
      { sessionId: id, title: 'hello' },
    ])
  })

  test('the agent works on when the connection is lost', async () => {
    const cwd = newDirectory()
    const lost = await second()
    const id = await lost.begin(cwd)
    await lost.agent.request('session/set_config_option', {
      sessionId: id,
      configId: 'mode',
      type: 'id',
      value: 'bypass',
    })
    await lost.send(id, 'wait')
    await lost.until('the command', () => shownInV2(lost.of(id)).some(({ status }) => status === 'in_progress'))
    await lost.kill()
    expect((await client().conversation(id).get()).status).toBe('running')
    await until(
      'the end of its streams',
      async () => !/^agent_server_streams\{.*\} [1-9]/m.test(await client().metrics()),
    )
    await using found = await second()
    await found.resume(id, cwd)
    expect(found.of(id).find(isState)).toMatchObject({ state: 'running' })
    await found.agent.notify('session/cancel', { sessionId: id })
    await found.until('the end', () => found.of(id).filter(isState).at(-1)?.state === 'idle')
    expect(found.of(id).filter(isState).at(-1)).toMatchObject({ stopReason: 'cancelled' })
  })
})

test('nobody connects without a key, with a wrong one, or with one that reads nothing', async () => {
  const refused = async (headers: Record<string, string>) =>
    await connectAs(server.url, '/acp', { headers }).catch(({ status }: { status: number }) => status)
  expect(await refused({ authorization: 'Bearer wrong-key-0123456789' })).toBe(401)
  expect(await refused({ authorization: `Bearer ${await keyWith({ scopes: ['files'] })}` })).toBe(403)
  expect(await server.call('GET', '/acp')).toMatchObject({ status: 426 })
  const silent = await connectAs(server.url, '/acp', {})
  silent.say({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 2 } })
  expect(await silent.closed).toBe(4401)
})

test('a browser sends its key in the first frame', async () => {
  const socket = await connectAsBrowser(server.url, '/acp')
  socket.say({ jsonrpc: '2.0', id: 7, method: 'initialize', params: { protocolVersion: 1 } })
  expect(await socket.until(({ id }) => id === 7)).toMatchObject({ result: { protocolVersion: 1 } })
  socket.close()
})

test('a key does what its scopes allow, in its own conversations', async () => {
  await using editor = await second(await keyWith({ scopes: ['read', 'write'], user_id: 'ann' }))
  const id = await editor.begin(newDirectory())
  expect(await client().conversation(id).get()).toMatchObject({ user_id: 'ann', state: { permission_mode: 'default' } })
  editor.onPermission = allow
  await editor.send(id, 'write')
  await editor.until('the refusal', () => JSON.stringify(editor.of(id)).includes('not accepted'))
  expect((await client().conversation(id).get()).status).toBe('waiting_for_confirmation')

  await using other = await second(await keyWith({ scopes: ['read', 'write', 'approve'], user_id: 'bob' }))
  await expect(other.resume(id, home)).rejects.toMatchObject({ code: -32_002 })
  await expect(other.send(id, 'hello')).rejects.toMatchObject({ code: -32_002 })
  await other.agent.request('session/delete', { sessionId: id })
  expect((await client().conversation(id).get()).id).toBe(id)
  expect((await other.agent.request('session/list', {})).sessions).toEqual([])

  await using reader = await second(await keyWith({ scopes: ['read'], user_id: 'ann' }))
  await reader.resume(id, home, { type: 'start' })
  expect(shownInV2(reader.of(id))).toMatchObject([
    { text: 'write' },
    { text: 'I write.' },
    { title: 'echo hi >> out.txt' },
  ])
  await expect(reader.send(id, 'hello')).rejects.toThrow('scope write')
  await expect(reader.begin(home)).rejects.toThrow('scope write')
})

test('a key that is limited to profiles makes sessions of them, and cannot loosen them', async () => {
  await client().profiles.put('careful', { permission_mode: 'plan' })
  const key = await keyWith({ scopes: ['read', 'write'], profiles: ['careful'] })
  await using editor = await second(key, '?profile=careful')
  const id = await editor.begin(newDirectory())
  expect(await client().conversation(id).get()).toMatchObject({
    profile: 'careful',
    state: { permission_mode: 'plan' },
  })
  const bypass = { sessionId: id, configId: 'mode', type: 'id', value: 'bypass' } as const
  await expect(editor.agent.request('session/set_config_option', bypass)).rejects.toThrow('profiles')
  await using wrong = await second(key)
  await expect(wrong.begin(home)).rejects.toThrow('profiles')
  await client().profiles.delete('careful')
})

test('a client whose key is revoked is disconnected', async () => {
  const { key, id } = await client().keys.create({ name: 'gone', scopes: ['read', 'write'] })
  const socket = await connect(server.url, '/acp', { headers: { authorization: `Bearer ${key}` } })
  socket.say({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  await socket.until(({ id: answered }) => answered === 1)
  await client().keys.delete(id)
  expect(await socket.closed).toBe(4401)
  expect(socket.frames.at(-1)).toMatchObject({ jsonrpc: '2.0', method: '_error', params: { error: 'unauthorized' } })
})

test('hostile frames are errors of the protocol, and the connection works on', async () => {
  const socket = await connect(server.url, '/acp')
  for (const frame of ['no json', '[]', 'null', '7', '"x"', '['.repeat(5000)]) socket.say(frame)
  socket.say({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/' } })
  socket.say({ jsonrpc: '2.0', id: 2, method: 'initialize', params: { protocolVersion: 0 } })
  socket.say({
    jsonrpc: '2.0',
    id: 3,
    method: 'initialize',
    params: { protocolVersion: 9, info: { name: 'x', version: '1' } },
  })
  expect(await socket.until(({ id }) => id === 3)).toMatchObject({ result: { protocolVersion: 2 } })
  expect(socket.frames.filter(({ id }) => id === null)).toHaveLength(6)
  for (const id of [1, 2]) expect(socket.frames.find((each) => each.id === id)).toHaveProperty('error')
  socket.say({ jsonrpc: '2.0', id: 4, method: 'session/new', params: { cwd: 'relative' } })
  socket.say({ jsonrpc: '2.0', id: 5, method: 'session/resume', params: { sessionId: '../../etc', cwd: '/' } })
  socket.say({ jsonrpc: '2.0', id: 6, method: 'no/such' })
  for (const id of [4, 5, 6]) expect(await socket.until((each) => each.id === id)).toHaveProperty('error')
  // The SDK passes on servers of types that it does not know.
  const mcpServers = [{ name: {}, type: 'unknown' }]
  socket.say({ jsonrpc: '2.0', id: 7, method: 'session/new', params: { cwd: newDirectory(), mcpServers } })
  expect(await socket.until(({ id }) => id === 7)).toMatchObject({ error: { code: -32_602 } })
  socket.close()
})

test('too large a frame, too many sessions and too many connections are refused', async () => {
  await using many = await second()
  const directory = newDirectory()
  const ids = await Promise.all(Array.from({ length: 100 }, () => many.begin(directory)))
  await expect(many.begin(directory)).rejects.toThrow('close one')
  await many.agent.request('session/close', { sessionId: ids[0]! })
  await many.begin(directory)

  const large = await connect(server.url, '/acp')
  large.say('x'.repeat(12 * 1024 * 1024))
  expect(await large.closed).toBe(1009)
  const key = await keyWith({ scopes: ['read'] })
  const open = async () => await connect(server.url, '/acp', { headers: { authorization: `Bearer ${key}` } })
  const sockets = await Promise.all(Array.from({ length: 64 }, open))
  await expect(open()).rejects.toMatchObject({ status: 429 })
  sockets.forEach((socket) => socket.close())
  await Promise.all(sockets.map(({ closed }) => closed))
})

test('many cancels at once are few requests, and the next prompt is answered', async () => {
  const requests = async () =>
    Number(/^agent_server_http_requests_total\{status="2.*\} (\d+)/m.exec(await client().metrics())![1])
  await using editor = await second()
  const id = await editor.begin(newDirectory())
  const before = await requests()
  await Promise.all(Array.from({ length: 500 }, () => editor.agent.notify('session/cancel', { sessionId: id })))
  // The cancels are read before the prompt.
  expect(await editor.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' })
  expect((await requests()) - before).toBeLessThan(100)
})

test('the sessions of a directory are listed in pages, each once, and a cursor of nobody is refused', async () => {
  await using editor = await second()
  const [mine, other] = [newDirectory(), newDirectory()]
  const make = async (workdir: string) => (await client().conversations.create({ workdir })).id
  const expected = new Set<string>()
  for (let at = 0; at < 104; at++) {
    expected.add(await make(mine))
    if (at % 2 === 0) await make(other)
  }
  const listed: string[] = []
  let pages = 0
  for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
    const page = await editor.agent.request('session/list', { cwd: mine, ...(cursor !== undefined && { cursor }) })
    listed.push(...page.sessions.map(({ sessionId }) => sessionId))
    expect(page.sessions.every(({ cwd }) => cwd === mine)).toBe(true)
    cursor = page.nextCursor ?? undefined
  }
  expect(pages).toBeGreaterThan(1)
  expect(listed.toSorted()).toEqual([...expected].toSorted())
  for (const cursor of ['nobody', 'x'.repeat(70_000)])
    await expect(editor.agent.request('session/list', { cursor })).rejects.toMatchObject({ code: -32_602 })
})

test('a server that stops closes the connection, and the session is resumed on the next one', async () => {
  const cwd = newDirectory()
  const before = await second()
  const id = await before.begin(cwd)
  await before.prompt(id, 'hello')
  const live = shownInV2(before.of(id))
  const socket = await connect(server.url, '/acp')
  await server.restart('SIGTERM')
  expect(await socket.closed).toBe(1001)
  await before.closed
  await using after = await second()
  await after.resume(id, cwd, { type: 'start' })
  expect(shownInV2(after.of(id))).toEqual(live)
  expect(await after.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' })
})
