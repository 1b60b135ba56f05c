/** Modes and rules over HTTP, with real commands: every path to a command, in every mode, with each kind of rule. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { answer, approve, requestsOf } from './requests.ts'

const MODES = ['default', 'accept_edits', 'plan', 'bypass', 'deny', 'callback'] as const
const RULES = ['no', 'allow', 'ask', 'deny'] as const
const PATHS = ['model call', 'task', 'after restart', 'client command', 'command task'] as const
type Mode = (typeof MODES)[number]
type Kind = (typeof RULES)[number]
type Outcome = 'runs' | 'asks' | 'denied'

/** What becomes of a command that changes something. */
function expected(path: (typeof PATHS)[number], mode: Mode, kind: Kind): Outcome {
  if (kind === 'deny') return 'denied'
  if (path === 'client command' || path === 'command task') return 'runs'
  if (mode === 'plan') return 'denied'
  if (mode === 'bypass') return kind === 'ask' ? 'asks' : 'runs'
  if (kind === 'allow') return 'runs'
  return mode === 'deny' || mode === 'callback' ? 'denied' : 'asks'
}

let stage: Stage
let hosts: ReadonlyMap<string, string>
const turn = { calls: [{ name: 'Bash', arguments: { command: 'touch made' } }] }

beforeAll(async () => {
  // By what the request ends with: a new message, or the result of the call.
  stage = await setStage(({ body }) => (body.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : turn))
  const made = new Map<string, string>()
  for (const path of ['model call', 'after restart'])
    for (const mode of MODES) for (const kind of RULES) made.set(`${path} ${mode} ${kind}`, await create(mode, kind))
  hosts = made
  await stage.server.restart('SIGKILL')
})
afterAll(() => stage[Symbol.asyncDispose]())

const create = (permission_mode: Mode, kind: Kind) =>
  stage.create({ permission_mode, ...(kind !== 'no' && { permission_rules: { [kind]: ['Bash(touch:*)'] } }) })

async function outcomeOf(id: string): Promise<Outcome> {
  const statusOf = async () => (await stage.server.call('GET', `/conversations/${id}`)).body.status
  await expect.poll(statusOf).not.toBe('running')
  if ((await statusOf()) === 'waiting_for_confirmation') return 'asks'
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  const isMade = await access(join(workdir, 'made')).then(
    () => true,
    () => false,
  )
  return isMade ? 'runs' : 'denied'
}

async function taskOutcome(id: string, runnable: object): Promise<Outcome> {
  const { call } = stage.server
  const { status, body } = await call('POST', `/conversations/${id}/tasks`, { title: 'touch', runnable })
  expect(status).toBe(201)
  const statusOf = async () => (await call('GET', `/conversations/${id}/tasks/${body.id}`)).body.status
  const conversation = async () => (await call('GET', `/conversations/${id}`)).body.status
  await expect
    .poll(async () => [await statusOf(), await conversation()].some((s) => /completed|error|waiting_for/.test(s)))
    .toBe(true)
  return await outcomeOf(id)
}

async function follow(path: (typeof PATHS)[number], mode: Mode, kind: Kind): Promise<Outcome> {
  const { call } = stage.server
  if (path === 'client command') {
    const id = await create(mode, kind)
    const { status, body } = await call('POST', `/conversations/${id}/commands`, { command: 'touch made' })
    if (status === 403) expect(body.error).toBe('denied_by_rule')
    return await outcomeOf(id)
  }
  if (path === 'task') {
    return await taskOutcome(await create(mode, kind), { type: 'AgentRun', message: { role: 'user', content: 'go' } })
  }
  if (path === 'command task')
    return await taskOutcome(await create(mode, kind), { type: 'Command', command: 'touch made' })
  const id = hosts.get(`${path} ${mode} ${kind}`)!
  const message = { role: 'user', content: 'go' }
  await call('POST', `/conversations/${id}/messages`, { message, run: true })
  return await outcomeOf(id)
}

describe.each(PATHS)('a command that changes something, by %s', (path) => {
  test.each(MODES)('in the mode %s', async (mode) => {
    const outcomes = await Promise.all(RULES.map((kind) => follow(path, mode, kind)))
    expect(outcomes).toEqual(RULES.map((kind) => expected(path, mode, kind)))
  })
})

test('a denied call has a result that says why, and the model continues', async () => {
  const id = await create('deny', 'no')
  const events = await stage.say(id, 'go')
  const result = events.find((event) => event.type === 'ToolResult')
  expect(result).toMatchObject({
    is_error: true,
    error_type: 'denied',
    output: expect.stringContaining('The mode is deny'),
  })
  expect(events.at(-1)).toMatchObject({ status: 'idle' })
})

test('no change of the mode or of the rules grants a call that waits', async () => {
  const { call } = stage.server
  const id = await create('default', 'no')
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  expect(await outcomeOf(id)).toBe('asks')
  for (const permission_mode of ['bypass', 'accept_edits', 'prompt'])
    expect((await call('PUT', `/conversations/${id}/config`, { permission_mode })).status).toBe(200)
  await call('PUT', `/conversations/${id}/permission-rules`, { allow: ['Bash'] })
  expect((await call('POST', `/conversations/${id}/run`)).body.error).toBe('waiting_for_confirmation')
  expect(await outcomeOf(id)).toBe('asks')

  expect((await call('GET', `/conversations/${id}`)).body.state.permission_mode).toBe('default')

  const [request] = await requestsOf(call, id, 'permission')
  await call('PUT', `/conversations/${id}/permission-rules`, { deny: ['Bash(touch:*)'] })
  await approve(call, id, request.request_id)
  expect(await outcomeOf(id), 'a deny rule holds for what was approved, too').toBe('denied')
})

test('what is remembered holds from the next call on, also after a restart, and can be removed', async () => {
  const { call, restart } = stage.server
  const id = await create('default', 'no')
  const go = async () => {
    await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
    return await outcomeOf(id)
  }
  expect(await go()).toBe('asks')
  await restart('SIGKILL')
  const [request] = await requestsOf(call, id, 'permission')
  expect(request.payload.tool_uses).toMatchObject([{ rules: ['Bash(touch made)'] }])
  const decide = () =>
    answer(call, id, request.request_id, decisionsFor(request, { behavior: 'allow', remember: true }))
  expect((await decide()).status).toBe(200)
  expect(await outcomeOf(id)).toBe('runs')
  expect((await decide()).status, 'the same again').toBe(200)

  await restart('SIGTERM')
  const kept = { allow: ['Bash(touch made)'], ask: [], deny: [] }
  expect((await call('GET', `/conversations/${id}/permission-rules`)).body).toEqual(kept)
  expect((await stage.events(id, 'types=ConfigUpdate')).map((event) => event.changes)).toEqual([
    { permission_rules: kept },
  ])
  expect(await go()).toBe('runs')
  expect((await call('PUT', `/conversations/${id}/permission-rules`, {})).body).toEqual({
    allow: [],
    ask: [],
    deny: [],
  })
  expect(await go()).toBe('asks')
})

test('only events that set rules or a mode have the version that servers without rules refuse to run', async () => {
  const { call } = stage.server
  const versions = async (id: string) => (await stage.events(id)).map(({ version }) => version)
  const plain = await stage.create({ permission_mode: 'bypass' })
  await call('PUT', `/conversations/${plain}/config`, { title: 'plain' })
  expect(await versions(plain)).toEqual([1, 1])
  await call('PUT', `/conversations/${plain}/permission-rules`, { deny: ['Bash(touch:*)'] })
  expect(await versions(plain)).toEqual([1, 1, 2])
  expect(await versions(await stage.create({ permission_mode: 'plan' }))).toEqual([2])
  const { body: fork } = await call('POST', `/conversations/${plain}/fork`, {})
  expect((await versions(fork.id)).at(-1)).toBe(2)
})

test('a text that is not a rule is refused with the reason, and nothing is created or changed', async () => {
  const { call } = stage.server
  const id = await create('default', 'deny')
  const faults = [
    ['Bash(git status', 'is not a rule'],
    ['Bash(git && rm)', 'one rule for each part'],
    ['Edit(/etc/**)', 'write `//`'],
    ['Read(../x)', '`..` is not possible'],
    ['Write(src/**)', 'only Bash, Read, Edit and WebFetch'],
    ['WebFetch(example.org)', 'domain:'],
    ['WebFetch(domain:a b)', 'is not a domain'],
    ['Bash(touch:*)(x)', 'nothing may follow'],
    ['Edit(src/[a)', 'square brackets'],
    ['Read()', 'it names no path'],
    ['mcp__', 'it names no MCP server'],
    ['mcp__server__', 'write mcp__server, or mcp__server__*'],
    ['To*l', 'only names of MCP tools'],
  ] as const
  for (const [rule, reason] of faults) {
    const { status, body } = await call('PUT', `/conversations/${id}/permission-rules`, { allow: [rule] })
    expect([status, body.error, body.message]).toEqual([400, 'invalid_request', expect.stringContaining(reason)])
    expect((await call('POST', '/conversations', { disallowed_tools: [rule] })).status).toBe(400)
  }
  expect((await call('GET', `/conversations/${id}/permission-rules`)).body.deny).toEqual(['Bash(touch:*)'])
})

test('a rule may call a tool by the names of other agent servers', async () => {
  const id = await create('default', 'no')
  const deny = ['execute_bash(rm:*)', 'bash', 'str_replace_editor']
  const { body } = await stage.server.call('PUT', `/conversations/${id}/permission-rules`, { deny })
  expect(body.deny).toEqual(['Bash(rm:*)', 'Bash', 'FileEditor'])
  expect(body).not.toHaveProperty('warnings')
})

test('a rule for a tool that does not exist is reported when the rules are replaced, and the reply can be sent back', async () => {
  const { call } = stage.server
  const path = `/conversations/${await create('default', 'no')}/permission-rules`
  const { body } = await call('PUT', path, { deny: ['Bsh', 'Agent'], ask: ['Bash'] })
  expect(body.warnings).toEqual(['The rules for Bsh stop nothing: there is no such tool.'])
  expect((await call('PUT', path, body)).body).toEqual(body)
  expect((await call('GET', path)).body).not.toHaveProperty('warnings')
})

test('the mode and the rules take the scope approve to change', async () => {
  const { call } = stage.server
  const id = await create('default', 'no')
  const { body: key } = await call('POST', '/keys', { name: 'writer', scopes: ['read', 'write'] })
  const asWriter = (method: string, path: string, body?: object) =>
    fetch(`${stage.server.url}/conversations/${id}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key.key}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE_S * 1000),
    })
  expect((await asWriter('PUT', '/config', { permission_mode: 'bypass' })).status).toBe(403)
  expect((await asWriter('PUT', '/permission-rules', {})).status).toBe(403)
  expect((await asWriter('GET', '/permission-rules')).status).toBe(200)
  expect((await asWriter('PUT', '/config', { title: 'mine' })).status).toBe(200)
})
