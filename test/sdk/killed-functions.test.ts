/** Hooks that are functions, while servers and programs are killed. */
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { QueryOptions } from '../../src/index.ts'
import { createClient, query, run, sessions } from '../../src/index.ts'
import { KEY, startServer } from '../support/server.ts'
import { eventsOf, resultsIn, setSdkStage, startHooked } from './stage.ts'
import { until } from '../support/until.ts'

const stage = await setSdkStage()
const server = await startServer()
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
})
const place = { persistDir: undefined, server: { baseUrl: server.url, apiKey: KEY } }
const later: QueryOptions = { ...stage.options, ...place }
const options: QueryOptions = { ...later, tools: ['Bash'] }
const client = createClient({ baseUrl: server.url, apiKey: KEY })
const bash = (command: string) => `call Bash ${JSON.stringify({ command })}`
const pre = (hook: (input: Record<string, unknown>) => unknown) => ({ PreToolUse: [{ hooks: [hook] }] })
const namesIn = async (id: string) => (await client.conversation(id).get()).client_hooks

test('the server is killed while a function works: the run has ended, and the next one is hooked', async () => {
  const asked: unknown[] = []
  let restarted = Promise.resolve()
  const deny = (input: Record<string, unknown>) => {
    asked.push(input['tool_input'])
    if (asked.length === 1) return (restarted = server.restart('SIGKILL')).then(() => ({}))
    return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } }
  }
  async function* messages() {
    yield bash('echo one')
    await until('the first call', async () => asked.length > 0)
    await restarted
    yield bash('echo two')
  }
  const { events, sessionId } = await run({ prompt: messages(), options: { ...options, hooks: pre(deny) } })
  expect(asked).toEqual([{ command: 'echo one' }, { command: 'echo two' }])
  const results = events.filter((event) => event.type === 'ToolResult')
  expect(results.map((event) => event.error_type)).toEqual(['interrupted', 'denied'])
  expect(await namesIn(sessionId)).toEqual([])
})

test('the holder of the directory is killed: the query fails, and the one that resumes it is asked', async () => {
  const shared = { persistDir: join(stage.home, 'ending') }
  const holder = startHooked({ ...stage.options, ...shared }, bash('echo hang'))
  await once(holder.stdout, 'data')
  const points: unknown[] = []
  const end = () => (points.push('PreToolUse'), holder.kill('SIGKILL'), new Promise(() => {}))
  const hooks = { ...pre(end), Stop: [{ hooks: [() => void points.push('Stop')] }] }
  const asking = query({ prompt: bash('echo x'), options: { ...stage.options, ...shared, tools: ['Bash'], hooks } })
  await expect(eventsOf(asking)).rejects.toMatchObject({ code: 'server_lost' })
  const { events } = await run({ options: { ...stage.options, ...shared, hooks, resume: asking.sessionId! } })
  expect(points).toEqual(['PreToolUse', 'Stop'])
  expect(resultsIn(events)).toMatchObject([{ stop_reason: 'completed' }])
  const log = await Array.fromAsync(sessions(shared).read(asking.sessionId!))
  expect(log.filter(({ type }) => type === 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
})

test('a program that is killed leaves hooks that deny, which the next query of the session removes', async () => {
  const child = startHooked({ ...stage.options, ...place }, bash('echo hang'))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  expect(line.toString()).toContain('asked')
  child.kill('SIGKILL')
  await once(child, 'close')
  const { items } = await client.conversations.list({ limit: 1 })
  const id = items[0]!.id
  const left = await namesIn(id)
  expect(left).toEqual([expect.stringMatching(/^query-/)])
  await client.conversation(id).pause({ interrupt: true })
  const asked: unknown[] = []
  const hooks = pre((input) => void asked.push(input['tool_input']))
  const { finalText } = await run({ prompt: bash('echo again'), options: { ...later, hooks, resume: id } })
  expect(asked, 'of the next query').toEqual([{ command: 'echo again' }])
  expect(finalText).toContain('again')
  expect(await namesIn(id)).toEqual([])
})
