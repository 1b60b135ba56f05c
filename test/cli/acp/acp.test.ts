/** `agent-server acp`, as an editor uses it: a process, the SDK of the protocol, and a scripted model. */
import type { McpServer, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startCommand } from '../../support/command.ts'
import { Editor } from './support/editor.ts'
import { shownIn } from './support/shown.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]
const LONG = `echo ${'x'.repeat(3000)} | cat > /dev/null\necho second >> out.txt`

let home: string
let work: string
let model: ScriptedModel
let editor: Editor

const env = () => ({
  OPENHANDS_DATA_DIR: join(home, 'data'),
  LLM_MODEL: 'scripted',
  LLM_BASE_URL: model.baseUrl,
  LLM_API_KEY: 'scripted-model-key',
})

const QUESTION = {
  question: 'Which one?',
  header: 'Choice',
  options: [
    { label: 'A', description: 'a' },
    { label: 'B', description: 'b' },
  ],
  multiSelect: false,
}

const TASKS = [
  { title: 'Read', status: 'done' },
  { title: 'Write', status: 'in_progress' },
]

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-acp-')))
  work = join(home, 'project')
  await mkdir(work)
  const edit = { command: 'create', path: join(work, 'new.txt'), file_text: 'one\n' }
  const plan = { command: 'plan', task_list: TASKS }
  model = await startScriptedModel({
    replies: [
      { when: 'hello', turns: [{ reasoning: 'They greet.', text: 'Hello there.' }] },
      { when: 'write', turns: [{ text: 'I write.', calls: bash('echo hi >> out.txt') }, { text: 'It is written.' }] },
      { when: 'long', turns: [{ calls: bash(LONG) }, { text: 'It was long.' }] },
      { when: 'look', turns: [{ calls: bash('ls') }, { text: 'I looked.' }] },
      { when: 'sleep', turns: [{ calls: bash('echo begun; sleep 600') }, { text: 'I slept.' }] },
      { when: 'create', turns: [{ calls: [{ name: 'FileEditor', arguments: edit }] }, { text: 'Created.' }] },
      { when: 'plan', turns: [{ calls: [{ name: 'TaskTracker', arguments: plan }] }, { text: 'Planned.' }] },
      {
        when: 'ask',
        turns: [{ calls: [{ name: 'AskUserQuestion', arguments: { questions: [QUESTION] } }] }, { text: 'Noted.' }],
      },
      { when: 'form', turns: [{ calls: [{ name: 'mcp__odd__ask', arguments: {} }] }, { text: 'Noted.' }] },
      { when: 'slow', turns: [{ text: 'I think '.repeat(1000), chunk_delay_ms: 200 }] },
      { when: 'refuse', turns: [{ status: 401, error: { message: 'no such key' } }] },
    ],
  })
  editor = await Editor.start({ env: env(), cwd: home, capabilities: { elicitation: { form: {} } } })
})
afterAll(async () => {
  await editor[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

const begin = async (by = editor) => (await by.agent.request('session/new', { cwd: work, mcpServers: [] })).sessionId
const choose = (optionId: string) => async (): Promise<RequestPermissionResponse> => ({
  outcome: { outcome: 'selected', optionId },
})
const hang = () => Promise.withResolvers<RequestPermissionResponse>().promise
const outFile = async () => await readFile(join(work, 'out.txt'), 'utf8').catch(() => '')
const load = (id: string, by = editor) => by.load(id, work)

test('answers in thoughts, text, plans and diffs, and a model that refuses is an error with its reason', async () => {
  const id = await begin()
  expect(await editor.prompt(id, 'hello')).toEqual({ stopReason: 'end_turn' })
  await editor.prompt(id, 'plan')
  editor.onPermission = choose('allow_once')
  await editor.prompt(id, 'create')
  expect(shownIn(editor.of(id))).toMatchObject([
    { kind: 'thought', text: 'They greet.' },
    { kind: 'message', text: 'Hello there.' },
    {
      kind: 'plan',
      entries: [
        { content: 'Read', status: 'completed' },
        { content: 'Write', status: 'in_progress' },
      ],
    },
    { kind: 'message', text: 'Planned.' },
    {
      kind: 'call',
      call: {
        name: 'FileEditor',
        title: 'create new.txt',
        kind: 'edit',
        status: 'completed',
        locations: [{ path: join(work, 'new.txt') }],
        content: [{ type: 'diff', path: join(work, 'new.txt'), oldText: null, newText: 'one\n' }],
      },
    },
    { kind: 'message', text: 'Created.' },
  ])
  await expect(editor.prompt(id, 'refuse')).rejects.toThrow(/no such key|LLM_API_KEY/)
})

describe('an approval', () => {
  test('shows the whole command, and runs it once if it is allowed', async () => {
    const id = await begin()
    editor.onPermission = choose('allow_once')
    expect(await editor.prompt(id, 'long')).toEqual({ stopReason: 'end_turn' })
    const asked = editor.permissions.at(-1)!
    expect(asked.toolCall.title).toBe(LONG)
    expect(JSON.stringify(asked.toolCall.content)).toContain(JSON.stringify(LONG).slice(1, -1))
    expect((await outFile()).match(/second/g)).toHaveLength(1)
  })

  test('is not asked for again after "always"', async () => {
    const id = await begin()
    editor.onPermission = choose('allow_always')
    await editor.prompt(id, 'write')
    const count = editor.permissions.length
    expect(editor.permissions.at(-1)!.options.find(({ kind }) => kind === 'allow_always')?.name).toMatch(
      /Always allow \w+\(/,
    )
    await editor.prompt(id, 'write')
    expect(editor.permissions).toHaveLength(count)
  })

  test('that is rejected runs nothing, and the agent continues', async () => {
    const [id, before] = [await begin(), await outFile()]
    editor.onPermission = choose('reject_once')
    expect(await editor.prompt(id, 'write')).toEqual({ stopReason: 'end_turn' })
    expect(await outFile()).toBe(before)
    expect(shownIn(editor.of(id))).toMatchObject([
      { text: 'I write.' },
      { call: { status: 'failed' } },
      { text: 'It is written.' },
    ])
  })

  test.each<[string, () => Promise<RequestPermissionResponse>]>([
    ['an unknown option', choose('allow_everything')],
    ['an error', async () => Promise.reject(new Error('no'))],
    ['a dismissal', async () => ({ outcome: { outcome: 'cancelled' } })],
  ])('is not given by %s', async (_, answer) => {
    const [id, before, count] = [await begin(), await outFile(), editor.permissions.length]
    editor.onPermission = answer
    const prompt = editor.prompt(id, 'write')
    await editor.until('the request', () => editor.permissions.length > count)
    await editor.agent.notify('session/cancel', { sessionId: id })
    expect(await prompt).toEqual({ stopReason: 'cancelled' })
    expect(await outFile()).toBe(before)
    expect(await editor.prompt(id, 'hello')).toEqual({ stopReason: 'end_turn' })
  })
})

describe('a cancel ends the prompt, and the next one works,', () => {
  const cases: readonly [string, string, (id: string) => boolean][] = [
    ['while the model answers', 'slow', (id) => editor.said(id).includes('think')],
    ['while a command runs', 'sleep', (id) => JSON.stringify(editor.of(id)).includes('begun\\n')],
    ['while it waits for an approval', 'write', (id) => editor.permissions.some(({ sessionId }) => sessionId === id)],
    ['at once', 'hello', () => true],
  ]
  test.each(cases)('%s', async (_, text, isThere) => {
    const id = await begin()
    editor.onPermission = text === 'sleep' ? choose('allow_once') : hang
    const prompt = editor.prompt(id, text)
    await editor.until('the work', () => isThere(id))
    await editor.agent.notify('session/cancel', { sessionId: id })
    // Without a wait: editors send the next prompt at once.
    const next = editor.prompt(id, 'hello')
    expect(await prompt).toEqual({ stopReason: 'cancelled' })
    expect(await next).toEqual({ stopReason: 'end_turn' })
    const calls = shownIn(editor.of(id)).filter(({ kind }) => kind === 'call')
    expect(calls.filter(({ call }) => call?.status !== 'completed' && call?.status !== 'failed')).toEqual([])
  })
})

test('a second prompt is refused while the first one is answered, and two sessions work at the same time', async () => {
  const [one, two] = await Promise.all([begin(), begin()])
  const prompt = editor.prompt(one, 'slow')
  await editor.until('the answer', () => editor.said(one) !== '')
  await expect(editor.prompt(one, 'hello')).rejects.toThrow('wait for its end, or cancel it')
  expect(await editor.prompt(two, 'hello')).toEqual({ stopReason: 'end_turn' })
  await editor.agent.notify('session/cancel', { sessionId: one })
  expect(await prompt).toEqual({ stopReason: 'cancelled' })
  expect(editor.said(two)).toBe('Hello there.')
})

test('questions are forms, or text that the next prompt answers', async () => {
  const id = await begin()
  editor.onQuestion = async ({ message }) => ({
    action: 'accept',
    content: message.includes('2. B: b') ? { question_0: 'B' } : {},
  })
  await editor.prompt(id, 'ask')
  expect(model.requests.at(-1)!.text).toContain('B')
  await using plain = await Editor.start({ env: env(), cwd: home })
  const asked = await begin(plain)
  expect(await plain.prompt(asked, 'ask')).toEqual({ stopReason: 'end_turn' })
  expect(plain.said(asked)).toContain('1. A: a')
  expect(await plain.prompt(asked, 'hello')).toEqual({ stopReason: 'end_turn' })
})

test.each([
  ['that the editor declines', { elicitation: { form: {} } }],
  ['that the editor cannot show', {}],
])('a form of an MCP server %s is declined, and the prompt ends', async (_, capabilities) => {
  // The server is a program of the tests, which the sandbox of the first editor hides where the clone is below /tmp.
  const unisolated = { ...env(), OPENHANDS_DATA_DIR: join(home, 'forms'), OPENHANDS_ISOLATION: 'none' }
  await using other = await Editor.start({ env: unisolated, cwd: home, capabilities })
  const args = [join(import.meta.dirname, '../../mcp/children/odd-server.ts')]
  const odd: McpServer = { name: 'odd', command: process.execPath, args, env: [] }
  const { sessionId } = await other.agent.request('session/new', { cwd: work, mcpServers: [odd] })
  await other.agent.request('session/set_mode', { sessionId, modeId: 'bypass' })
  other.onQuestion = async () => ({ action: 'decline' })
  expect(await other.prompt(sessionId, 'form')).toEqual({ stopReason: 'end_turn' })
  expect(model.requests.at(-1)!.text).toContain('decline')
})

test('modes and options change the conversation, and unknown ones are refused', async () => {
  const { sessionId, modes, configOptions } = await editor.agent.request('session/new', { cwd: work, mcpServers: [] })
  expect(modes?.currentModeId).toBe('default')
  expect(configOptions).toMatchObject([
    { id: 'mode', currentValue: 'default' },
    { id: 'model', currentValue: 'scripted' },
  ])
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'bypass' })
  const count = editor.permissions.length
  await editor.prompt(sessionId, 'write')
  expect(editor.permissions).toHaveLength(count)
  // Another client can choose `callback`, which is offered while it is in force.
  for (const modeId of ['root', 'callback'])
    await expect(editor.agent.request('session/set_mode', { sessionId, modeId })).rejects.toThrow('one of')
  const effort = { sessionId, configId: 'thought_level', value: 'high' } as const
  await expect(editor.agent.request('session/set_config_option', effort)).rejects.toThrow('mode, model')
  const option = { sessionId, configId: 'model', value: 'other' } as const
  const changed = await editor.agent.request('session/set_config_option', option)
  expect(changed).toMatchObject({ configOptions: [{ currentValue: 'bypass' }, { currentValue: 'other' }] })
})

test('the prompt can have images, files and links, and what cannot be read is refused', async () => {
  const sessionId = await begin()
  const image = Buffer.from('\x89PNG\r\n', 'latin1').toString('base64')
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'hello' },
      { type: 'image', mimeType: 'image/png', data: image },
      { type: 'resource', resource: { uri: `file://${work}/a.ts`, text: 'const a = 1', mimeType: 'text/plain' } },
      { type: 'resource_link', uri: `file://${work}/b.ts`, name: 'b.ts' },
    ],
  })
  const { text } = model.requests.at(-1)!
  for (const part of [image, 'const a = 1', join(work, 'a.ts'), join(work, 'b.ts')]) expect(text).toContain(part)
  const audio = { type: 'audio', mimeType: 'audio/wav', data: '' } as const
  await expect(editor.agent.request('session/prompt', { sessionId, prompt: [audio] })).rejects.toThrow('audio')
  await expect(editor.agent.request('session/prompt', { sessionId, prompt: [] })).rejects.toThrow('empty')
})

test('after kill -9 another process lists and loads the session as it was shown, asks again, and can cancel', async () => {
  await using first = await Editor.start({ env: { ...env(), OPENHANDS_DATA_DIR: join(home, 'killed') }, cwd: home })
  const id = await begin(first)
  await first.prompt(id, 'hello')
  first.onPermission = choose('allow_once')
  await first.prompt(id, 'look')
  const live = shownIn(first.of(id))
  first.onPermission = hang
  const before = await outFile()
  void first.prompt(id, 'write').catch(() => {}) // it is killed
  await first.until('the request', () => first.permissions.length === 1)
  await first.kill()

  await using second = await Editor.start({ env: { ...env(), OPENHANDS_DATA_DIR: join(home, 'killed') }, cwd: home })
  const { sessions } = await second.agent.request('session/list', { cwd: work })
  expect(sessions).toMatchObject([{ sessionId: id, cwd: work }])
  await load(id, second)
  const replayed = shownIn(second.of(id)).filter(({ kind }) => kind !== 'user')
  expect(replayed.slice(0, live.length)).toEqual(live)
  expect(shownIn(second.of(id))[0]).toMatchObject({ kind: 'user', text: 'hello' })
  await second.until('the request', () => second.permissions.length === 1)
  expect(second.permissions[0]!.toolCall.title).toBe('echo hi >> out.txt')
  await second.agent.notify('session/cancel', { sessionId: id })
  await second.until('the end of the call', () => shownIn(second.of(id)).at(-1)?.call?.status === 'failed')
  expect(await second.prompt(id, 'hello')).toEqual({ stopReason: 'end_turn' })
  expect(await outFile()).toBe(before)
  expect(await second.leave()).toBe(0)
})

test('hostile lines change nothing, and only messages are written', async () => {
  const lines = [
    'not json',
    '[]',
    'null',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}',
    '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}',
    '{"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":7}}',
    '{"jsonrpc":"2.0","id":5,"method":"session/load","params":{"sessionId":"../../etc","cwd":"/","mcpServers":[]}}',
    '{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nobody"}}',
    '{"jsonrpc":"2.0","id":6,"method":"no/such","params":{"__proto__":{"a":1}}}',
    '{"jsonrpc":"2.0","id":99,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}',
    `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":${'['.repeat(5000)}}`,
  ]
  const { code, stdout } = await startCommand(['acp'], { env: env(), cwd: home, input: `${lines.join('\n')}\n` })
    .finished
  expect(code).toBe(0)
  const answers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { id: number; error?: { code: number } })
  const byId = new Map(answers.map((answer) => [answer.id, answer]))
  const unnamed = answers.filter(({ id }) => id === null).map(({ error }) => error?.code)
  // A line that is not JSON, a batch, no object, and one without a method; the last line is not JSON, either.
  expect(unnamed).toEqual([-32_700, -32_600, -32_600, -32_600, -32_700])
  expect(byId.get(2)).toMatchObject({ result: { protocolVersion: 1, agentInfo: { name: 'agent-server' } } })
  for (const id of [1, 3, 4, 5, 6]) expect(byId.get(id)?.error, String(id)).toBeDefined()
  for (const line of editor.output.split('\n').filter(Boolean))
    expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
})

test('without a model a session says what to set', async () => {
  const settings = { OPENHANDS_DATA_DIR: join(home, 'empty'), HOME: home }
  await using unset = await Editor.start({ env: settings, cwd: home, capabilities: { auth: { terminal: true } } })
  await expect(begin(unset)).rejects.toMatchObject({ code: -32_000, message: expect.stringContaining('model') })
  expect(existsSync(join(home, 'empty'))).toBe(true)
})
