/** MCP servers that attack their client: its memory, its sockets, its event loop, its user and its secrets. */
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { startOddHttpServer } from '../mcp/children/odd-http-server.ts'
import { setStage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')
const call = (name: string, args: Record<string, unknown> = {}) => ({ calls: [{ name, arguments: args }] })
const DONE: ScriptedTurn = { text: 'Done.' }
const when = (name: string, args: Record<string, unknown> = {}) => ({ when: name, turns: [call(name, args), DONE] })

const odd = await startOddHttpServer()
const stage = await setStage(
  {
    replies: [
      when('mcp__odd__echo'),
      when('mcp__odd__asks'),
      when('ReadMcpResource', { server: 'odd', uri: 'file:///etc/passwd' }),
      when('ListMcpPrompts'),
      when('Bash', { command: 'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -c API_TOKEN=' }),
      when('mcp__odd__hang'),
      { turns: [DONE] },
    ],
  },
  {
    env: {
      OPENHANDS_MCP_ALLOW: '127.0.0.1',
      OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':'),
    },
  },
)
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await odd[Symbol.asyncDispose]()
})
const { server } = stage

const SECRET = 'value-of-the-secret'
const remote = (mode: string, more: object = {}) =>
  stage.create({
    mcp: {
      mcpServers: { odd: { url: `${odd.url}/${mode}`, headers: { 'X-Token': '${TOKEN}' }, timeout: 20, ...more } },
    },
    secrets: { TOKEN: SECRET },
  })
const program = (mode: string, more: object = {}, fields: object = {}) =>
  stage.create({
    mcp: {
      mcpServers: {
        odd: {
          command: process.execPath,
          args: [join(CHILDREN, 'odd-server.ts'), mode],
          env: { TOKEN: '${TOKEN}' },
          ...more,
        },
      },
    },
    secrets: { TOKEN: SECRET },
    ...fields,
  })
const viewOf = async (id: string) => (await server.call('GET', `/conversations/${id}/mcp`)).body.items[0]
const resultOf = async (id: string, name: string) =>
  (await stage.say(id, name)).find(({ type }) => type === 'ToolResult')
const callsOf = (mode: string) => odd.seen.filter((each) => each.mode === mode && each.call === 'tools/call').length

test.each(['cuts', 'cuts-resumable', 'resets'])('an answer that the server %s is an interrupted call', async (mode) => {
  const id = await remote(mode)
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ error_type: 'interrupted' })
  expect(callsOf(mode)).toBe(1)
  expect(await viewOf(id)).toMatchObject({ status: 'connected' })
})

test('a server that has forgotten the session is connected again, and the call is not repeated', async () => {
  const id = await remote('forgets')
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ error_type: 'interrupted' })
  expect(callsOf('forgets')).toBe(1)
  await expect.poll(async () => (await viewOf(id)).status).toBe('connected')
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ is_error: false })
  expect(callsOf('forgets')).toBe(2)
})

test('a session is ended on the server with its conversation', async () => {
  const id = await remote('plain')
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ is_error: false })
  await server.call('DELETE', `/conversations/${id}`)
  await expect.poll(() => odd.seen.some(({ mode, method }) => mode === 'plain' && method === 'DELETE')).toBe(true)
})

test.each([
  ['pings', /^it leaves more than 32 requests unanswered/],
  ['deep', /^it sent a message that is nested more than 200 levels deep/],
  ['wide', /^it sent a message that holds more than 100000 values/],
  ['packed', /^it sent a compressed message/],
])('a server that %s is given up', async (mode, error) => {
  const id = await remote(mode)
  await stage.say(id, 'nothing')
  await expect
    .poll(async () => (await stage.events(id, 'types=McpServerUpdate')).map((each) => each.error ?? ''))
    .toContainEqual(expect.stringMatching(error))
})

test('a server does not decide how often its stream is opened again', async () => {
  const id = await remote('reopens')
  await stage.say(id, 'nothing')
  const opened = () => odd.seen.filter(({ mode, method }) => mode === 'reopens' && method === 'GET').length
  await expect.poll(opened).toBeGreaterThan(5)
  // Without a limit there are about as many as other requests in the same time.
  for (let times = 0; times < 100; times++) expect((await server.call('GET', '/info')).status).toBe(200)
  expect(opened()).toBeLessThan(12)
})

test('redirects to other hosts are not followed', async () => {
  const id = await remote('redirects')
  const { output } = await resultOf(id, 'mcp__odd__echo')
  expect(output).toContain('Redirect to http://169.254.169.254/latest not followed')
})

test('a secret that a server sends back is redacted in its errors, however it is written', async () => {
  const echoing = await remote('echoes')
  expect((await resultOf(echoing, 'mcp__odd__echo')).output).toContain('<secret:TOKEN>')
  const complaining = await program('complaint')
  await stage.say(complaining, 'nothing')
  await expect.poll(async () => (await viewOf(complaining)).error).toContain('its last output')
  for (const id of [echoing, complaining]) {
    const seen = JSON.stringify([await stage.events(id), await viewOf(id)])
    // Also no end of it where text was cut.
    expect(seen).not.toContain(SECRET.slice(-8))
  }
})

test('a server shows one form at a time, and the others are declined', async () => {
  const id = await program('plain')
  expect((await resultOf(id, 'mcp__odd__asks')).output).toContain('39 were declined')
  const ofForms = await stage.events(id, 'types=RequestOpened,RequestClosed,ToolResult')
  expect(ofForms, 'the form ends with the call, which did not wait for it').toMatchObject([
    { type: 'RequestOpened', kind: 'elicitation' },
    { type: 'RequestClosed', reason: 'interrupted' },
    { type: 'ToolResult' },
  ])
  expect((await server.call('GET', `/conversations/${id}/requests`)).body).toMatchObject({ items: [] })
})

test('any number of reconnects at the same time is one connection', async () => {
  const id = await program('plain')
  await stage.say(id, 'nothing')
  const path = `/conversations/${id}/mcp/odd/reconnect`
  const answers = await Promise.all(Array.from({ length: 10 }, () => server.call('POST', path)))
  expect(new Set(answers.map(({ body }) => body.status))).toEqual(new Set(['connected']))
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ is_error: false })
  const updates = await stage.events(id, 'types=McpServerUpdate')
  expect(updates.map(({ status }) => status)).toEqual(['connected'])
})

test('a run connects a server again when a secret that it names has changed', async () => {
  const id = await program('plain')
  await stage.say(id, 'nothing')
  await server.call('PUT', `/conversations/${id}/secrets`, { secrets: { TOKEN: 'another-value-of-it' } })
  const events = await stage.say(id, 'mcp__odd__echo')
  expect(events.find(({ type }) => type === 'ToolResult')).toMatchObject({ is_error: false })
  await server.call('DELETE', `/conversations/${id}/secrets/TOKEN`)
  await stage.say(id, 'nothing')
  expect(await viewOf(id)).toMatchObject({ status: 'failed', error: expect.stringContaining('the secret TOKEN') })
})

test('a rule for a server holds for its resources and prompts', async () => {
  const permission_rules = { allow: [], ask: [], deny: ['mcp__odd'] }
  const id = await program('plain', {}, { permission_rules })
  for (const name of ['ReadMcpResource', 'ListMcpPrompts'])
    expect(await resultOf(id, name)).toMatchObject({ error_type: 'denied' })
})

test('commands of the agent cannot read the environment of a server that runs in the sandbox', async () => {
  const id = await program('plain', { env: { API_TOKEN: 'a-literal-token-of-the-server' } })
  expect(await resultOf(id, 'mcp__odd__echo')).toMatchObject({ is_error: false })
  expect((await resultOf(id, 'Bash')).output).toMatchObject({ stdout: '0\n' })
})

test('a conversation can be deleted during a call', async () => {
  const id = await program('plain')
  await server.call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'mcp__odd__hang' },
    run: true,
  })
  await expect.poll(async () => (await stage.events(id, 'types=ToolUse')).length).toBe(1)
  expect((await server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
  expect((await server.call('GET', `/conversations/${id}`)).status).toBe(410)
  await expect.poll(() => markedProcesses(id)).toEqual([])
})

test('variables that no process can have are refused, and not quoted', async () => {
  for (const env of [{ 'A=B': 'internal' }, { '': 'x' }, { 'A-B': 'internal' }, { A: 'internal\0--bind' }]) {
    const mcp = { mcpServers: { odd: { command: 'true', env } } }
    const { status, body } = await server.call('POST', '/conversations', { mcp })
    expect(status, JSON.stringify(env)).toBe(400)
    expect(JSON.stringify(body)).not.toContain('internal')
  }
})

test('headers that would change the request are refused, and not quoted', async () => {
  for (const headers of [{ 'bad name': 'x' }, { Host: 'internal' }, { 'X\r\nY': 'x' }]) {
    const mcp = { mcpServers: { odd: { url: odd.url, headers } } }
    const { status, body } = await server.call('POST', '/conversations', { mcp })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('entry 1 cannot be set')])
    expect(JSON.stringify(body)).not.toContain('internal')
  }
})
