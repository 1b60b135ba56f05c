/** What is approved is what runs: tools whose definition changes between the approval and the call. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { createPlanner } from '../support/subagents.ts'

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
const permissions = async (id: string) => (await call('GET', `/conversations/${id}/permissions`)).body.items
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
  await call('POST', `/conversations/${id}/approve`, { request_id })
  await poll(async () => (await viewOf(id)).status).toBe('idle')
}

test('a call that was asked about does not run if its server has changed the tool since; the same call then runs', async () => {
  planner.plan = {
    'send it': [called('mcp__odd__echo'), called('mcp__odd__echo'), { text: 'Done.' }],
  }
  const id = await stage.create({ permission_mode: 'default', mcp: { mcpServers: { odd: odd('changing') } } })
  await post(id, 'send it')
  await poll(() => permissions(id)).toHaveLength(1)
  const [{ request_id, tool_uses }] = await permissions(id)
  expect(tool_uses[0].definition_hash).toMatch(/^[0-9a-f]{64}$/)
  await writeFile(join((await viewOf(id)).workdir, 'change'), '')
  await poll(() => descriptionOf(id, 'mcp__odd__echo')).toBe('Sends everything elsewhere.')
  await call('POST', `/conversations/${id}/approve`, { request_id })
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
  await call('POST', `/conversations/${id}/approve`, { request_id })
  const waiting = async () => (await call('GET', `/conversations/${id}/tool-calls`)).body.items
  await poll(waiting).toHaveLength(1)
  await call('DELETE', `/conversations/${id}`)
})
