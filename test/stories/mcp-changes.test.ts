/** MCP servers and tools that change while a conversation works: what is approved is what runs. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { createPlanner } from '../support/subagents.ts'
import { approve, requestsOf } from './requests.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')

const planner = createPlanner()
let stage: Stage
beforeAll(async () => {
  const readable = [join(ROOT, 'node_modules'), CHILDREN].join(':')
  stage = await setStage(planner.script, { env: { OPENHANDS_SANDBOX_READABLE: readable } })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const post = (id: string, content: string) =>
  call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
const poll = (look: () => Promise<unknown>) => expect.poll(look, { timeout: PATIENCE_MS, interval: 20 })
const permissions = (id: string) => requestsOf(call, id, 'permission')
const viewOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body
const resultsOf = async (id: string) => (await stage.events(id)).filter(({ type }) => type === 'ToolResult')
const called = (name: string, input: object = {}) => ({ calls: [{ name, arguments: { ...input } }] })
const odd = (mode = 'plain') => ({ command: process.execPath, args: [join(CHILDREN, 'odd-server.ts'), mode] })
const toolsOf = async (id: string) => (await call('GET', `/conversations/${id}/agent-info`)).body.tools
const descriptionOf = async (id: string, name: string) =>
  (await toolsOf(id)).find((tool: { name: string }) => tool.name === name)?.description

async function approveAll(id: string): Promise<void> {
  await poll(() => permissions(id)).toHaveLength(1)
  const [{ request_id }] = await permissions(id)
  await approve(call, id, request_id)
  await poll(async () => (await viewOf(id)).status).toBe('idle')
}

test('a call that was asked about does not run if its server has changed the tool since; the same call then runs', async () => {
  planner.plan = {
    'send it': [called('mcp__odd__echo'), called('mcp__odd__echo'), { text: 'Done.' }],
  }
  const id = await stage.create({ permission_mode: 'default', mcp: { mcpServers: { odd: odd('changing') } } })
  // A run does not wait long for a server that starts slowly.
  await call('POST', `/conversations/${id}/mcp/odd/reconnect`)
  await poll(() => descriptionOf(id, 'mcp__odd__echo')).toBeDefined()
  await post(id, 'send it')
  await poll(() => permissions(id)).toHaveLength(1)
  const [{ request_id, payload }] = await permissions(id)
  expect(payload.tool_uses[0].definition_hash).toMatch(/^[0-9a-f]{64}$/)
  await writeFile(join((await viewOf(id)).workdir, 'change'), '')
  await poll(() => descriptionOf(id, 'mcp__odd__echo')).toBe('Sends everything elsewhere.')
  await approve(call, id, request_id)
  await poll(async () => (await resultsOf(id)).length).toBe(1)
  await approveAll(id)
  const [refused, ran] = await resultsOf(id)
  expect(refused).toMatchObject({ is_error: true, error_type: 'denied' })
  expect(refused.output).toContain('has changed since the user was asked')
  expect(ran).toMatchObject({ is_error: false })
})

test('the same holds for a tool of the client, and not for another change of the configuration', async () => {
  planner.plan = { 'look up': [called('look_up', { number: 7 }), { text: 'Done.' }] }
  const tool = { name: 'look_up', description: 'Returns an order.', input_schema: { type: 'object' } }
  const id = await stage.create({ permission_mode: 'default', client_tools: [tool] })
  await post(id, 'look up')
  await poll(() => permissions(id)).toHaveLength(1)
  const changed = [{ ...tool, description: 'Deletes an order.' }]
  expect((await call('PUT', `/conversations/${id}/config`, { client_tools: changed })).status).toBe(200)
  await approveAll(id)
  expect(await resultsOf(id)).toMatchObject([{ is_error: true, error_type: 'denied' }])

  await post(id, 'look up')
  await poll(() => permissions(id)).toHaveLength(1)
  await call('PUT', `/conversations/${id}/config`, { title: 'other', client_tools: changed })
  const [{ request_id }] = await permissions(id)
  await approve(call, id, request_id)
  await poll(() => requestsOf(call, id, 'client_tool')).toHaveLength(1)
  await call('DELETE', `/conversations/${id}`)
})

const put = (id: string, mcpServers: object) => call('PUT', `/conversations/${id}/config`, { mcp: { mcpServers } })
const serversOf = async (id: string) => (await call('GET', `/conversations/${id}/mcp`)).body.items
const statusOf = async (id: string) =>
  (await serversOf(id)).map(({ name, status }: { name: string; status: string }) => [name, status])
const offered = (at: number): string[] =>
  (planner.seen.at(at)!.body as any).tools.map((tool: any) => tool.function.name) // eslint-disable-line typescript/no-explicit-any

test('PUT config in the middle of a run: new servers are there at a later step, and removed ones are gone', async () => {
  planner.plan = {
    'use both': [
      called('mcp__one__echo'),
      called('Bash', { command: 'while [ ! -e go ]; do sleep 0.02; done' }),
      called('mcp__two__echo'),
      called('mcp__one__echo'),
      { text: 'Done.' },
    ],
  }
  const id = await stage.create({ tools: ['Bash'], mcp: { mcpServers: { one: odd(), kept: odd() } } })
  await post(id, 'use both')
  await poll(async () => (await stage.events(id)).filter(({ type }) => type === 'ToolUse').length).toBe(2)
  const { status, body } = await put(id, { two: odd(), kept: odd() })
  expect([status, Object.keys(body.mcp.mcpServers)]).toEqual([200, ['two', 'kept']])
  await poll(() => statusOf(id)).toEqual([
    ['kept', 'connected'],
    ['two', 'connected'],
  ])
  await writeFile(join(body.workdir, 'go'), '')
  await poll(async () => (await viewOf(id)).status).toBe('idle')
  expect((await resultsOf(id)).map((event) => event.error_type)).toEqual([
    undefined,
    undefined,
    undefined,
    'unknown_tool',
  ])
  expect(offered(-1).filter((name) => name.endsWith('__echo'))).toEqual(['mcp__kept__echo', 'mcp__two__echo'])
  const events = await stage.events(id)
  const connected = events.filter(({ type }) => type === 'McpServerUpdate').map((event) => event.server)
  expect(connected).toHaveLength(3)
  expect(new Set(connected)).toEqual(new Set(['kept', 'one', 'two']))

  await stage.server.restart('SIGKILL')
  expect(await statusOf(id)).toEqual([
    ['two', 'pending'],
    ['kept', 'pending'],
  ])
  await put(id, {})
  expect(await serversOf(id)).toEqual([])
  await stage.say(id, 'nothing')
  expect(offered(-1)).toEqual(['Bash'])
})

test('a conversation without servers gets one in the middle of a run', async () => {
  planner.plan = {
    'wait for it': [
      called('Bash', { command: 'while [ ! -e go ]; do sleep 0.02; done' }),
      called('mcp__new__echo'),
      { text: 'Done.' },
    ],
  }
  const id = await stage.create({ tools: ['Bash'] })
  await post(id, 'wait for it')
  await poll(async () => (await stage.events(id)).filter(({ type }) => type === 'ToolUse').length).toBe(1)
  await put(id, { new: odd() })
  await poll(() => statusOf(id)).toEqual([['new', 'connected']])
  await writeFile(join((await viewOf(id)).workdir, 'go'), '')
  await poll(async () => (await viewOf(id)).status).toBe('idle')
  expect((await resultsOf(id)).at(-1)).toMatchObject({ is_error: false })
})

test('a call to a server that is removed is interrupted; a server of that name that comes back works', async () => {
  planner.plan = { 'hang on': [called('mcp__odd__hang'), { text: 'Done.' }], again: [called('mcp__odd__echo')] }
  const id = await stage.create({ mcp: { mcpServers: { odd: odd() } } })
  await post(id, 'hang on')
  await poll(async () => (await stage.events(id)).filter(({ type }) => type === 'ToolUse').length).toBe(1)
  await poll(() => statusOf(id)).toEqual([['odd', 'connected']])
  await put(id, {})
  await put(id, { odd: odd() })
  await poll(async () => (await viewOf(id)).status).toBe('idle')
  await stage.say(id, 'again')
  expect((await resultsOf(id)).map((event) => event.error_type)).toEqual(['interrupted', undefined])
})

test('an approval is not carried over to another server of the same name', async () => {
  planner.plan = { 'echo it': [called('mcp__odd__echo'), { text: 'Done.' }] }
  const id = await stage.create({ permission_mode: 'default', mcp: { mcpServers: { odd: odd() } } })
  await post(id, 'echo it')
  await poll(() => permissions(id)).toHaveLength(1)
  await put(id, { odd: odd('changing') })
  await approveAll(id)
  expect(await resultsOf(id)).toMatchObject([{ is_error: true, error_type: 'denied' }])
})

test('a masked credential keeps the stored one for the same address only, and the change needs its scopes', async () => {
  const url = 'https://mcp.example.com/mcp'
  const authorized = (Authorization: string, more: object = {}) => ({ url, headers: { Authorization }, ...more })
  const id = await stage.create({ mcp: { mcpServers: { far: authorized('Bearer first-credential') } } })
  const same = await put(id, { far: authorized('**********', { timeout: 7 }) })
  expect([same.status, same.body.mcp.mcpServers.far]).toMatchObject([
    200,
    { timeout: 7, headers: { Authorization: '**********' } },
  ])
  const moved = await put(id, { far: authorized('**********', { url: 'https://elsewhere.example.com/mcp' }) })
  expect([moved.status, moved.body.message]).toEqual([400, expect.stringContaining('masked value')])
  expect((await put(id, { far: authorized('Bearer second-credential') })).status).toBe(200)
  expect(JSON.stringify(await stage.events(id))).not.toContain('-credential')

  const keyOf = async (...scopes: string[]) =>
    (await call('POST', '/keys', { name: scopes.join(' '), scopes, conversations: [id] })).body.key
  const as = async (key: string, mcpServers: object) =>
    (await call('PUT', `/conversations/${id}/config`, { mcp: { mcpServers } }, { authorization: `Bearer ${key}` }))
      .status
  expect(await as(await keyOf('read', 'write'), {})).toBe(403)
  expect(await as(await keyOf('read', 'write', 'approve'), { odd: odd() })).toBe(403)
  expect(await as(await keyOf('read', 'write', 'approve'), {})).toBe(200)
})
