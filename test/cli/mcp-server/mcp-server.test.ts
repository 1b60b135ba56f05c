/** `agent-server mcp`, as another agent uses it: the process, and the client of the protocol's own SDK. */
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { AgentReport } from '../../../src/protocols/mcp/agent-report.ts'
import { waitingFor } from '../../../src/protocols/mcp/agent-report.ts'
import { createClient } from '../../../src/client/client.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startCommand } from '../../support/command.ts'
import type { TestServer } from '../../support/server.ts'
import { commandLine, KEY } from '../../support/server.ts'
import { startServerHere } from '../../support/server-here.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]

let home: string
let work: string
let model: ScriptedModel
let server: TestServer
let agents: Client

/** A program with this key. */
async function connect(key: string, options: ConstructorParameters<typeof Client>[1] = {}): Promise<Client> {
  const [command, ...args] = commandLine(['mcp', '--server', server.url])
  const env = { PATH: process.env['PATH']!, HOME: process.env['HOME']!, OPENHANDS_MASTER_KEY: key }
  const client = new Client({ name: 'test', version: '1' }, options)
  await client.connect(new StdioClientTransport({ command, args, env, cwd: home }))
  return client
}

async function call(name: string, args: Record<string, unknown>, by = agents) {
  const { content, structuredContent, isError } = await by.callTool({ name, arguments: args })
  const [first] = content
  const text = first?.type === 'text' ? first.text : ''
  return { text, isError, report: structuredContent as AgentReport }
}

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-mcp-')))
  work = join(home, 'project')
  await mkdir(work)
  model = await startScriptedModel({
    replies: [
      { when: 'hello', turns: [{ text: 'Hello there.' }] },
      { when: 'write', turns: [{ calls: bash('echo hi >> out.txt') }, { text: 'It is written.' }] },
      { when: 'look up', turns: [{ calls: [{ name: 'look_up', arguments: { number: '17' } }] }, { text: 'Found.' }] },
      { when: 'slow', turns: [{ text: 'I think '.repeat(1000), chunk_delay_ms: 200 }] },
    ],
  })
  const llm = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'scripted-model-key' }
  server = await startServerHere({ ...llm, OPENHANDS_WORKDIR_BASE: home })
  agents = await connect(KEY)
})
afterAll(async () => {
  await agents.close()
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

test('offers five tools, and says which of them can change something', async () => {
  const { tools } = await agents.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['start_agent', 'continue_agent', 'get_agent', 'decide', 'stop_agent'])
  expect(tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name)).toEqual(['get_agent'])
})

test('an agent is started, waits for a decision with the hash of its call, and is continued', async () => {
  const started = await call('start_agent', { prompt: 'write', workdir: work })
  const { conversation_id, pending, status } = started.report
  expect(started.text.split('\n')[0]).toBe(`Conversation ${conversation_id}: ${status}`)
  expect(pending).toMatchObject([{ name: 'Bash', input: { command: 'echo hi >> out.txt' } }])
  const { request_id, tool_use_id, input_hash } = pending[0]!
  const decision = { conversation_id, request_id, tool_use_id, behavior: 'allow' }
  expect(await call('decide', { ...decision, input_hash: '0'.repeat(64) })).toMatchObject({ isError: true })
  const decided = await call('decide', { ...decision, input_hash })
  expect(decided.report).toMatchObject({ status: 'idle', final_text: 'It is written.', pending: [] })
  expect(await readFile(join(work, 'out.txt'), 'utf8')).toBe('hi\n')
  const continued = await call('continue_agent', { conversation_id, prompt: 'hello' })
  expect(continued.report.final_text).toBe('Hello there.')
})

test('an agent that works longer than the wait is reported as running, with progress, and can be stopped', async () => {
  const progress: unknown[] = []
  const request = { name: 'start_agent', arguments: { prompt: 'slow', workdir: work, wait_seconds: 0.5 } }
  const started = await agents.callTool(request, { onprogress: (each) => void progress.push(each) })
  const { conversation_id, status } = started.structuredContent as AgentReport
  expect(status).toBe('running')
  expect(progress).not.toEqual([])
  expect((await call('stop_agent', { conversation_id })).report.status).toBe('paused')
})

test('a key without the scope approve decides nothing, and unknown ids and waits are refused', async () => {
  const { report } = await call('start_agent', { prompt: 'write', workdir: work })
  const { conversation_id, pending } = report
  const { key } = await createClient({ baseUrl: server.url, apiKey: KEY }).keys.create({
    name: 'agents',
    scopes: ['read', 'write'],
  })
  const narrow = await connect(key)
  const { request_id, tool_use_id, input_hash } = pending[0]!
  const refused = await call(
    'decide',
    { conversation_id, request_id, tool_use_id, input_hash, behavior: 'allow' },
    narrow,
  )
  await narrow.close()
  expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('approve') })
  expect((await call('get_agent', { conversation_id, wait_seconds: 0 })).report.pending).toHaveLength(1)
  expect(await call('get_agent', { conversation_id: crypto.randomUUID() })).toMatchObject({ isError: true })
  expect(await call('get_agent', { conversation_id, wait_seconds: 46 })).toMatchObject({ isError: true })
})

test('what only others can answer is shown, with who they are', async () => {
  const tool = { name: 'look_up', description: 'Looks up', input_schema: { type: 'object' } }
  const { body } = await server.call('POST', '/conversations', { client_tools: [tool], permission_mode: 'bypass' })
  const waits = await call('continue_agent', { conversation_id: body.id, prompt: 'look up' })
  expect(waits.report.waiting).toMatchObject([{ kind: 'client_tool', about: expect.stringContaining('look_up') }])
  const [{ request_id, answer } = { request_id: '', answer: '' }] = waits.report.waiting
  expect(answer).toContain(`POST /conversations/${body.id}/requests/${request_id}`)
  expect(waits.text).toContain('It waits for a client: look_up: {"number":"17"}.')
  await server.call('POST', `/conversations/${body.id}/requests/${request_id}`, { kind: 'client_tool', output: 'x' })
  const found = await call('get_agent', { conversation_id: body.id })
  expect(found.report).toMatchObject({ status: 'idle', final_text: 'Found.', waiting: [] })
})

test('each kind of what waits says what is asked, and which scope answers it', () => {
  const of = {
    request_id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c',
    opened_at: '2026-01-31T12:00:00.000Z',
    tool_use_ids: [],
  }
  const question = { question: 'Which branch?', header: '', options: [], multi_select: false }
  const texts = [
    waitingFor('c', { ...of, kind: 'network', payload: { host: 'example.org', port: 443 } }),
    waitingFor('c', { ...of, kind: 'elicitation', payload: { server: 'tickets', questions: [question] } }),
    waitingFor('c', { ...of, kind: 'hook', payload: { client: 'reviewer', hook_id: 'a', hook_point: 'PreToolUse' } }),
  ].map(({ about, answer }) => `${about} ${answer}`)
  expect(texts[0]).toMatch(/example\.org:443.*approve/)
  expect(texts[1]).toMatch(/asks the user for the MCP server tickets: Which branch\?.*write/)
  expect(texts[2]).toMatch(/waits for the client reviewer.*approve/)
})

test('a client that polls tasks gets one for an agent at work, and an error for an unknown one', async () => {
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const client = await connect(KEY, { capabilities, versionNegotiation: { mode: 'auto' } })
  const ask = async (method: string, params: Record<string, unknown>) =>
    await client.request({ method, params }, z.looseObject({}))
  const started = await call('start_agent', { prompt: 'slow', wait_seconds: 0 })
  const { conversation_id, seq } = started.report
  const taskId = `${conversation_id}.${seq}`
  expect(await ask('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  await ask('tasks/cancel', { taskId })
  await expect.poll(() => ask('tasks/get', { taskId })).toMatchObject({ status: 'cancelled' })
  for (const unknown of [`${crypto.randomUUID()}.1`, `${conversation_id}.99999`, 'x'])
    await expect(ask('tasks/get', { taskId: unknown })).rejects.toMatchObject({ code: -32602 })
  await client.close()
})

test('a line that is not a message is refused', async () => {
  const lines = [
    'not json',
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    'null',
    '{"jsonrpc":"2.0"}',
    '{"id":2,"method":"ping"}',
    '{"jsonrpc":"2.0","id":3,"method":7}',
    '{"jsonrpc":"2.0","id":4,"method":"ping","params":7}',
    ' ',
    `{"jsonrpc":"2.0","id":5,"method":"${'x'.repeat(11 * 1024 * 1024)}"}`,
  ]
  const { code, stdout } = await startCommand(['mcp', '--server', server.url], {
    env: { OPENHANDS_MASTER_KEY: KEY },
    cwd: home,
    // The last line has no end.
    input: `${lines.join('\n')}\r\nalso not json`,
  }).finished
  expect(code).toBe(0)
  const answers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  const refusals = answers.filter(({ error }) => error).map(({ id, error }) => [id, error.code])
  const invalid = -32_600
  expect(refusals).toEqual([
    [null, -32_700],
    [null, invalid],
    [null, invalid],
    [null, invalid],
    [null, invalid],
    [2, invalid],
    [3, invalid],
    [4, invalid],
    [null, invalid],
    [null, -32_700],
  ])
})

describe('all requests get an answer before the program ends with its input', () => {
  const request = (id: number, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
  const clientInfo = { name: 'test', version: '1' }
  const begin = [
    request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }),
    { jsonrpc: '2.0', method: 'notifications/initialized' },
  ]
  const answersTo = async (messages: readonly object[], end: string) => {
    const { code, stdout } = await startCommand(['mcp', '--server', server.url], {
      env: { OPENHANDS_MASTER_KEY: KEY },
      cwd: home,
      input: messages.map((each) => JSON.stringify(each)).join('\n') + end,
    }).finished
    expect(code).toBe(0)
    return stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }

  test.each([
    ['without an end of its last line', ''],
    ['with one', '\n'],
  ])('%s', async (_, end) => {
    const start = request(3, 'tools/call', { name: 'start_agent', arguments: { prompt: 'hello', workdir: work } })
    const answers = await answersTo([...begin, request(2, 'tools/list'), start], end)
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set([1, 2, 3]))
    expect(answers).toHaveLength(3)
    const { result } = answers.find(({ id }) => id === 3)!
    expect(result.structuredContent).toMatchObject({ status: 'idle', final_text: 'Hello there.' })
  })

  test('except those that were cancelled', async () => {
    const slow = request(2, 'tools/call', { name: 'start_agent', arguments: { prompt: 'slow', workdir: work } })
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } }
    expect((await answersTo([...begin, slow, cancelled], '')).map(({ id }) => id)).toEqual([1])
  })
})
