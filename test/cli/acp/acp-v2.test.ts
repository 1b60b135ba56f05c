/** `agent-server acp` with version 2 of the protocol: a process, the SDK of the protocol, and a scripted model. */
import type { RequestPermissionResponse } from '@agentclientprotocol/sdk/experimental/v2'
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { EditorV2, isState } from './support/editor-v2.ts'
import { shownInV2 } from './support/shown-v2.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]
const edit = (path: string, old_str: string, new_str: string) => [
  { name: 'FileEditor', arguments: { command: 'str_replace', path, old_str, new_str } },
]
const LONG = `echo ${'x'.repeat(3000)} | cat > /dev/null\necho second >> out.txt`
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
const HELPER = { description: 'A part', prompt: 'small part', run_in_background: true }

let home: string
let work: string
let model: ScriptedModel
let editor: EditorV2

const env = (data = 'data') => ({
  OPENHANDS_DATA_DIR: join(home, data),
  LLM_MODEL: 'scripted',
  LLM_BASE_URL: model.baseUrl,
  LLM_API_KEY: 'scripted-model-key',
})

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-acp-')))
  work = join(home, 'a project')
  await mkdir(work)
  await writeFile(join(work, 'code.txt'), 'one\ntwo\nthree\n')
  const plan = { command: 'plan', task_list: TASKS }
  model = await startScriptedModel({
    replies: [
      { when: 'hello', turns: [{ reasoning: 'They greet.', text: 'Hello there.' }] },
      { when: 'two at once', turns: [{ calls: [...bash('echo 1'), ...bash('echo 2')] }, { text: 'Both.' }] },
      { when: 'long', turns: [{ calls: bash(LONG) }, { text: 'It was long.' }] },
      { when: 'edit', turns: [{ calls: edit(join(work, 'code.txt'), 'two', '2') }, { text: 'Edited.' }] },
      { when: 'plan', turns: [{ calls: [{ name: 'TaskTracker', arguments: plan }] }, { text: 'Planned.' }] },
      {
        when: 'ask',
        turns: [{ calls: [{ name: 'AskUserQuestion', arguments: { questions: [QUESTION] } }] }, { text: 'Noted.' }],
      },
      { when: 'torn', turns: [{ text: 'Torn in two parts.', cut_after: 3 }, { text: 'In one piece.' }] },
      { when: 'sleep', turns: [{ calls: bash('echo begun; sleep 600') }, { text: 'I slept.' }] },
      { when: 'hurry up', turns: [{ text: 'I hurry.' }] },
      { when: 'slow', turns: [{ calls: bash('while [ ! -e go ]; do sleep 0.05; done; rm go') }, { text: 'Slowly.' }] },
      { when: 'refuse', turns: [{ status: 401, error: { message: 'no such key' } }] },
      { when: 'delegate', turns: [{ calls: [{ name: 'Task', arguments: HELPER }] }, { text: 'It works.' }] },
      {
        when: 'small part',
        turns: [{ calls: bash('while [ ! -e part ]; do sleep 0.05; done') }, { text: 'Part done.' }],
      },
      { when: 'Part done.', turns: [{ text: 'All done.' }] },
    ],
  })
  editor = await EditorV2.start({
    env: env(),
    cwd: home,
    capabilities: { elicitation: { form: {} }, auth: { terminal: {} } },
  })
})
afterAll(async () => {
  await editor[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

const choose = (optionId: string) => async (): Promise<RequestPermissionResponse> => ({
  outcome: { outcome: 'selected', optionId },
})
const hang = () => Promise.withResolvers<RequestPermissionResponse>().promise
const begin = (by = editor) => by.begin(work)
const statesOf = (id: string) => editor.of(id).filter(isState)
const allowAll = async (id: string) =>
  await editor.agent.request('session/set_config_option', {
    sessionId: id,
    configId: 'mode',
    type: 'id',
    value: 'bypass',
  })

test('the version is the highest that both sides speak, and the keys come from the environment', async () => {
  expect(editor.info).toMatchObject({
    protocolVersion: 2,
    info: { name: 'agent-server' },
    capabilities: { session: { prompt: { image: {}, embeddedContext: {} }, mcp: { stdio: {}, http: {} }, delete: {} } },
    authMethods: [{ type: 'agent' }, { type: 'terminal', args: ['--set-up'] }],
  })
  expect(await editor.agent.request('auth/login', { methodId: 'environment' })).toEqual({})
  await expect(editor.agent.request('auth/login', { methodId: 'password' })).rejects.toMatchObject({ code: -32_602 })
})

test('a prompt is answered at once, and the work is reported until the agent is idle', async () => {
  const id = await begin()
  editor.onPermission = choose('allow_once')
  const messageId = await editor.send(id, 'hello')
  expect(await editor.atRest(id, 0)).toMatchObject({ state: 'idle', stopReason: 'end_turn', background: [] })
  expect(await editor.prompt(id, 'plan')).toMatchObject({ stopReason: 'end_turn' })
  expect(await editor.prompt(id, 'two at once')).toMatchObject({ stopReason: 'end_turn' })
  expect(shownInV2(editor.of(id))).toMatchObject([
    { kind: 'user', id: messageId, text: 'hello' },
    { kind: 'thought', text: 'They greet.' },
    { kind: 'message', text: 'Hello there.' },
    { kind: 'user', text: 'plan' },
    { kind: 'plan', plan: { type: 'items', entries: [{ status: 'completed' }, { status: 'in_progress' }] } },
    { kind: 'message', text: 'Planned.' },
    { kind: 'user', text: 'two at once' },
    { kind: 'call', name: 'Bash', title: 'echo 1', status: 'completed' },
    { kind: 'call', name: 'Bash', title: 'echo 2', status: 'completed' },
    { kind: 'message', text: 'Both.' },
  ])
  expect(await editor.prompt(id, 'refuse')).toMatchObject({
    stopReason: 'error',
    error: { message: expect.stringMatching(/no such key|LLM_API_KEY/) },
  })
})

test('an approval shows the whole command, and requires action until it is given', async () => {
  const id = await begin()
  editor.onPermission = choose('allow_once')
  await editor.prompt(id, 'long')
  const { title, subject } = editor.permissions.at(-1)!
  expect(title).toBe(LONG)
  expect(JSON.stringify(subject)).toContain(JSON.stringify(LONG).slice(1, -1))
  expect(statesOf(id).map(({ state }) => state)).toEqual(['running', 'requires_action', 'running', 'idle'])
  expect((await readFile(join(work, 'out.txt'), 'utf8')).match(/second/g)).toHaveLength(1)
})

test('what an edit has changed is a patch with absolute paths', async () => {
  const id = await begin()
  editor.onPermission = choose('allow_once')
  await editor.prompt(id, 'edit')
  const path = join(work, 'code.txt')
  const asked = JSON.stringify(editor.permissions.at(-1)!.subject)
  expect(asked).toContain(String.raw`-two\n+2`)
  expect(shownInV2(editor.of(id))).toMatchObject([
    { kind: 'user' },
    {
      kind: 'call',
      status: 'completed',
      content: [
        {
          type: 'diff',
          changes: [{ operation: 'modify', path, fileType: 'text' }],
          patch: {
            format: 'git_patch',
            text: expect.stringMatching(new RegExp(`^diff --git ${path} ${path}\n--- ${path}\n\\+\\+\\+ ${path}\n@@ `)),
          },
        },
      ],
    },
    { kind: 'message', text: 'Edited.' },
  ])
})

test('a prompt steers the agent that works, which stays at work', async () => {
  const id = await begin()
  await allowAll(id)
  await editor.send(id, 'slow')
  await editor.until('the command', () => shownInV2(editor.of(id)).some(({ status }) => status === 'in_progress'))
  await editor.send(id, 'hurry up')
  await writeFile(join(work, 'go'), '')
  expect(await editor.atRest(id, 0)).toMatchObject({ stopReason: 'end_turn' })
  expect(statesOf(id).map(({ state }) => state)).toEqual(['running', 'idle'])
  expect(shownInV2(editor.of(id)).at(-1)).toMatchObject({ kind: 'message', text: 'I hurry.' })
})

test('an answer that broke off is taken back', async () => {
  const id = await begin()
  await editor.prompt(id, 'torn')
  const texts = shownInV2(editor.of(id)).filter(({ kind }) => kind === 'message')
  expect(texts).toMatchObject([{ text: 'In one piece.' }])
  expect(editor.of(id)).toContainEqual(expect.objectContaining({ sessionUpdate: 'agent_message', content: [] }))
})

test('a question is a form, and its answer is read', async () => {
  const id = await begin()
  editor.onQuestion = async () => ({ action: 'accept', content: { question_0: 'B' } })
  expect(await editor.prompt(id, 'ask')).toMatchObject({ stopReason: 'end_turn' })
  expect(editor.questions.at(-1)).toMatchObject({ mode: 'form', message: expect.stringContaining('2. B: b') })
  expect(model.requests.at(-1)!.text).toContain('B')
})

describe('a cancel ends the work, and the next prompt works,', () => {
  test.each<[string, string, (id: string) => boolean]>([
    ['while a command runs', 'sleep', (id) => JSON.stringify(editor.of(id)).includes('begun\\n')],
    ['while it waits for an approval', 'long', (id) => editor.permissions.some(({ sessionId }) => sessionId === id)],
    ['at once', 'hello', () => true],
  ])('%s', async (_, text, isThere) => {
    const id = await begin()
    editor.onPermission = text === 'sleep' ? choose('allow_once') : hang
    await editor.send(id, text)
    await editor.until('the work', () => isThere(id))
    await editor.agent.notify('session/cancel', { sessionId: id })
    const end = await editor.atRest(id, 0)
    if (text !== 'hello') expect(end).toMatchObject({ stopReason: 'cancelled' })
    expect(await editor.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' })
    const open = shownInV2(editor.of(id)).filter(
      ({ kind, status }) => kind === 'call' && !String(status).endsWith('ed'),
    )
    expect(open).toEqual([])
  })
})

test('a session that is closed while it works is cancelled first, and is not known any more', async () => {
  const id = await begin()
  editor.onPermission = choose('allow_once')
  await editor.send(id, 'sleep')
  await editor.until('the work', () => JSON.stringify(editor.of(id)).includes('begun\\n'))
  await editor.close(id)
  expect(statesOf(id).at(-1)).toMatchObject({ state: 'idle', stopReason: 'cancelled' })
  await expect(editor.send(id, 'hello')).rejects.toMatchObject({ code: -32_002 })
})

test('a subagent in the background is named until it has ended', async () => {
  const id = await begin()
  await allowAll(id)
  await editor.send(id, 'delegate')
  await editor.until('the end of the turn', () => statesOf(id).at(-1)?.state === 'idle')
  const call = shownInV2(editor.of(id)).find(({ name }) => name === 'Task')!
  expect(call).toMatchObject({ status: 'in_progress' })
  expect(statesOf(id).at(-1)).toMatchObject({ background: [{ type: 'tool_call', toolCallId: call.id }] })
  await writeFile(join(work, 'part'), '')
  await editor.until('the answer to it', () => JSON.stringify(editor.of(id)).includes('All done.'))
  await editor.until('the end', () => statesOf(id).at(-1)?.state === 'idle')
  expect(statesOf(id).at(-1)).toMatchObject({ background: [] })
  expect(shownInV2(editor.of(id)).find(({ name }) => name === 'Task')).toMatchObject({ status: 'completed' })
})

test('after kill -9 a session is resumed as it was shown, from the start, from a place, or without its past', async () => {
  await using first = await EditorV2.start({ env: env('killed'), cwd: home })
  const id = await begin(first)
  first.onPermission = choose('allow_once')
  for (const text of ['hello', 'plan', 'two at once', 'torn']) await first.prompt(id, text)
  const live = shownInV2(first.of(id))
  first.onPermission = hang
  await first.send(id, 'long')
  await first.until('the request', () => first.permissions.at(-1)?.title === LONG)
  await first.kill()

  await using second = await EditorV2.start({ env: env('killed'), cwd: home })
  expect((await second.agent.request('session/list', { cwd: work })).sessions).toMatchObject([{ sessionId: id }])
  await second.resume(id, work, { type: 'start' })
  expect(shownInV2(second.of(id)).slice(0, live.length)).toEqual(live)
  expect(second.of(id).filter(isState).at(-1)).toMatchObject({ state: 'requires_action' })
  await second.until('the request', () => second.permissions.length === 1)
  expect(second.permissions[0]!.title).toBe(LONG)
  await second.agent.notify('session/cancel', { sessionId: id })
  await second.until('the end', () => second.of(id).filter(isState).at(-1)?.state === 'idle')
  expect(await second.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' })

  const before = second.of(id).length
  await second.resume(id, work)
  expect(second.of(id).slice(before).find(isState)).toMatchObject({ state: 'idle' })
  expect(shownInV2(second.of(id).slice(before))).toEqual([])
  await second.resume(id, work, { type: '_seq', seq: 1_000_000 })
  await expect(second.resume(id, work, { type: '_seq', seq: -1 })).rejects.toMatchObject({ code: -32_602 })
  const missing = '00000000-0000-4000-8000-000000000000'
  await expect(second.resume(missing, work)).rejects.toMatchObject({ code: -32_002 })
})
