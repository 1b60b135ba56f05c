/** Options of `agent-server -p` that are settings of the conversation, files in and out, and copies. */
import { mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { pickTurn } from '../../src/llm/scripted/script.ts'
import { ASKS } from '../support/asked-question.ts'
import type { CommandOptions } from '../support/command.ts'
import { runCommand, startCommand } from '../support/command.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const SCHEMA = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const SCRIPT = {
  replies: [
    { when: 'only with JSON', turns: [{ text: '{"name": "rope"}' }] },
    {
      when: 'list',
      turns: [{ calls: [{ name: 'Bash', arguments: { command: 'echo one; echo two >&2' } }] }, { text: 'Two.' }],
    },
    {
      when: 'delegate',
      turns: [
        {
          calls: [{ name: 'Task', arguments: { description: 'x', prompt: 'look at it', subagent_type: 'reviewer' } }],
        },
        { text: 'Reviewed.' },
      ],
    },
    { when: 'hang', turns: [{ text: 'I think', hang: true }] },
    { when: 'ask me', turns: [ASKS] },
    { when: 'refuse', turns: [{ status: 401, error: { message: 'no such key' } }] },
    { turns: [{ text: 'Hello.' }] },
  ],
}

let home: string
let work: string
let model: ScriptedModel
let server: TestServer
const questions: ScriptedQuestion[] = []

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'headless-options-')))
  work = join(home, 'project')
  await mkdir(work)
  model = await startScriptedModel((question) => {
    questions.push(question)
    return pickTurn(SCRIPT, question)
  })
  server = await startServer()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true })
})

const shared = (): CommandOptions => {
  const settings = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test' }
  const data = { OPENHANDS_DATA_DIR: server.dataDir, OPENHANDS_MASTER_KEY: KEY }
  return { cwd: work, env: { HOME: home, ...settings, ...data } }
}
const print = async (...args: string[]) => {
  const finished = await runCommand(['-p', ...args], shared())
  return { ...finished, id: /conversation (\S+) in/.exec(finished.stderr)?.[1] ?? '' }
}
const view = async (id: string) => (await server.call('GET', `/conversations/${id}`)).body
const rules = async (id: string) => (await server.call('GET', `/conversations/${id}/permission-rules`)).body
const lines = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const ids = async () => (await server.call('GET', '/conversations')).body.items.map(({ id }: { id: string }) => id)

test('options are settings of a new conversation', async () => {
  const id = randomUUID()
  const names = ['--name', 'ropes', '--tools', 'Bash,FileEditor', '--session-id', id]
  const limits = ['--max-seconds', '60', '--max-budget-usd', '0.5', '--allow-unpriced']
  const llm = ['--effort', 'low', '--fallback-model', 'small, smaller']
  const prompt = ['--append-system-prompt', 'Speak plainly.', '--disallowed-tools', 'Bash(git push:*)']
  const { code } = await print(...limits, ...llm, ...prompt, ...names, 'hello')
  expect(code).toBe(0)
  expect(await view(id)).toMatchObject({
    title: 'ropes',
    tools: ['Bash', 'FileEditor'],
    max_seconds_per_run: 60,
    max_budget_usd: 0.5,
    allow_unpriced: true,
    llm_config: { reasoning_effort: 'low', fallback_models: ['small', 'smaller'] },
    workdir: work,
  })
  expect((await rules(id)).deny).toEqual(['Bash(git push:*)'])
  expect(JSON.stringify(questions.at(-1)!.messages[0])).toContain('Speak plainly.')
  expect(await print('--session-id', id, 'hello')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`Conversation ${id} already exists`),
  })
})

test.each([true, false])(
  'a message of another client instead of an answer, with run: %s, ends the wait',
  async (run) => {
    const id = randomUUID()
    const args = ['--session-id', id, '--tools', 'AskUserQuestion', '--ask', 'clients', '--output-format', 'json']
    const asking = startCommand(['-p', ...args, 'ask me'], shared())
    await until('the question', async () => (await view(id)).status === 'waiting_for_input')
    expect((await server.call('POST', `/conversations/${id}/messages`, { message: 'hello', run })).status).toBe(202)
    const { code, stdout } = await asking.finished
    const [end] = lines(stdout)
    if (run) expect([code, end]).toMatchObject([0, { stop_reason: 'completed', final_text: 'Hello.', steps: 2 }])
    else expect([code, end]).toMatchObject([1, { stop_reason: 'superseded', steps: 1 }])
  },
)

test('a prompt of the system is replaced, and a preset or no tools at all can be chosen', async () => {
  await print('--system-prompt', 'You are a clock.', '--tools', '', 'hello')
  const { messages, body } = questions.at(-1)!
  expect(messages[0]!.content).toMatch(/^You are a clock\./)
  expect(body['tools']).toBeUndefined()
  const { id } = await print('--tools', 'minimal', 'hello')
  expect((await view(id)).tools).toContain('Bash')
})

test('the answer fits a schema, which is inline or in a file, and with a resumed conversation for the runs only', async () => {
  const path = join(home, 'schema.json')
  await writeFile(path, JSON.stringify(SCHEMA))
  const first = await print('--json-schema', path, 'describe it')
  expect([first.code, first.stdout]).toEqual([0, '{"name":"rope"}\n'])
  const { id } = await print('hello')
  const json = ['--json-schema', JSON.stringify(SCHEMA), '--output-format', 'json']
  const resumed = await print(...json, '-r', id, 'describe it')
  expect(JSON.parse(resumed.stdout)).toMatchObject({ structured_output: { name: 'rope' }, exit_code: 0 })
  expect((await view(id)).output_schema).toBeUndefined()
})

test('subagents of an option work in the conversation, with field names of the API or of Claude Code, also from a file', async () => {
  const reviewer = { description: 'Reviews ropes.', prompt: 'You review ropes.', tools: ['Bash'] }
  const other = { ...reviewer, disallowedTools: ['Bash(rm:*)'], maxTurns: 3, permissionMode: 'acceptEdits' }
  const own = { ...reviewer, disallowed_tools: ['Bash(rm:*)'], max_steps: 3, permission_mode: 'accept_edits' }
  const path = join(home, 'agents.json')
  await writeFile(path, JSON.stringify({ reviewer: own }))
  for (const agents of [JSON.stringify({ reviewer: other }), path]) {
    const before = questions.length
    const { code, stdout, id } = await print('--agents', agents, 'delegate')
    expect([code, stdout]).toEqual([0, 'Reviewed.\n'])
    expect((await view(id)).agents).toEqual({ reviewer: own })
    const prompts = questions.slice(before).map(({ messages }) => JSON.stringify(messages[0]))
    expect(prompts.filter((prompt) => prompt.includes('You review ropes.'))).toHaveLength(1)
  }
})

test('a resumed conversation is changed, or keeps what it was created with', async () => {
  const { id } = await print('--tools', 'Bash', 'hello')
  const budget = ['--max-budget-usd', '2']
  const unpriced = await print('-r', id, ...budget, 'hello')
  expect([unpriced.code, unpriced.stderr]).toEqual([2, expect.stringContaining('--allow-unpriced')])
  const changes = [
    '--name',
    'renamed',
    ...budget,
    '--allow-unpriced',
    '--disallowed-tools',
    'Bash(rm:*)',
    '--effort',
    'high',
  ]
  expect((await print('-r', id, ...changes, 'hello')).code).toBe(0)
  expect(await view(id)).toMatchObject({
    title: 'renamed',
    max_budget_usd: 2,
    llm_config: { model: 'scripted', reasoning_effort: 'high' },
  })
  expect(await rules(id)).toMatchObject({ allow: [], deny: ['Bash(rm:*)'] })
  for (const [option, value] of [
    ['tools', 'Bash'],
    ['system-prompt', 'x'],
    ['append-system-prompt', 'x'],
  ] as const)
    expect(await print('-r', id, `--${option}`, value, 'hello')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`--${option} cannot change a resumed conversation, which keeps`),
    })
})

test('a copy is continued in the same directory, and the original stays as it is', async () => {
  const { id } = await print('--name', 'first', 'hello')
  const before = await view(id)
  const copy = randomUUID()
  const forked = await print('-r', id, '--fork-session', '--session-id', copy, '--name', 'second', 'describe it')
  expect(forked).toMatchObject({ code: 0, id: copy, stderr: expect.stringContaining(`a copy of conversation ${id}`) })
  expect(await view(copy)).toMatchObject({ title: 'second', workdir: work })
  expect(await view(id)).toEqual(before)
  expect(questions.at(-1)!.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
  const all = await ids()
  expect(
    (await print('-r', id, '--fork-session', '--json-schema', '{"type": "rope"}', '--cwd', '/proc', 'hello')).code,
  ).toBe(2)
  expect(await ids()).toEqual(all)
})

test('the last answer is also in a file, which has nothing of an earlier one', async () => {
  const path = join(work, 'answer.txt')
  await writeFile(path, 'the answer of yesterday')
  const { stdout } = await print('-o', 'answer.txt', '--output-format', 'json', 'hello')
  expect(JSON.parse(stdout)).toMatchObject({ final_text: 'Hello.' })
  expect(await readFile(path, 'utf8')).toBe('Hello.\n')
  expect((await print('-o', 'answer.txt', 'refuse')).code).toBe(1)
  expect(await readFile(path, 'utf8')).toBe('')
  const full = await print('-o', '/dev/full', 'hello')
  expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be written to /dev/full (ENOSPC)') })
  await rm(path)
})

test('the file of the last answer can be a pipe, if somebody reads it', async () => {
  const path = join(work, 'pipe')
  await execa('mkfifo', [path])
  expect(await print('-o', 'pipe', 'hello')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cannot be written (nobody reads this pipe)'),
  })
  const reader = execa('cat', [path])
  expect((await print('-o', 'pipe', 'hello')).code).toBe(0)
  expect((await reader).stdout).toBe('Hello.')
  await rm(path)
})

test('an image is a part of the prompt', async () => {
  await writeFile(join(work, 'dot.png'), PNG)
  expect((await print('-i', 'dot.png', '-i', 'dot.png', 'hello')).code).toBe(0)
  expect(questions.at(-1)!.messages.at(-1)!.content).toMatchObject([
    { type: 'text', text: 'hello' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
    { type: 'image_url' },
  ])
  await rm(join(work, 'dot.png'))
})

test('an ephemeral conversation is deleted at the end, also after an interrupt, and its directory stays', async () => {
  const before = await ids()
  const ended = await print('--ephemeral', '--max-steps', '1', '--allowed-tools', 'Bash', 'list')
  expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/stopped: max_steps after 1 steps\.\n$/) })
  const { child, finished, said } = startCommand(['-p', '--ephemeral', 'hang'], shared())
  await said('conversation ')
  child.kill('SIGINT')
  expect(await finished).toMatchObject({ code: 130, stderr: expect.stringMatching(/interrupted\.\n$/) })
  expect(await ids()).toEqual(before)
  expect((await stat(work)).isDirectory()).toBe(true)
})

test('stream-json of a new conversation begins with its SystemInit, and that of a resumed one with what is new', async () => {
  const json = ['--output-format', 'stream-json']
  const first = lines((await print(...json, 'hello')).stdout)
  expect(first.slice(0, 2)).toMatchObject([{ type: 'SystemInit', seq: 1 }, { type: 'UserMessage' }])
  const resumed = lines((await print(...json, '-r', first[0].conversation_id, 'hello')).stdout)
  expect(resumed[0]).toMatchObject({ type: 'UserMessage' })
})

test('stderr has what a tool has returned, as text', async () => {
  const { stderr } = await print('--allowed-tools', 'Bash', 'list')
  expect(stderr).toContain('\nresult: one ⏎ two\n')
})

test.each([
  ['a number that is none', ['--max-budget-usd', 'much'], /--max-budget-usd is not valid: /],
  ['a number that is too small', ['--max-budget-usd', '0'], /--max-budget-usd is not valid: .*>0/],
  ['a schema that is no JSON', ['--json-schema', '{oops'], /--json-schema is not valid JSON\./],
  ['a schema that is no schema', ['--json-schema', '{"type": "rope"}'], /--json-schema/],
  ['a file that does not exist', ['--json-schema', 'none.json'], /none\.json cannot be read/],
  ['a subagent without a prompt', ['--agents', '{"a": {"description": "A."}}'], /--agents is not valid: a\.prompt: /],
  [
    'a subagent with an unknown field',
    ['--agents', '{"a": {"description": "A.", "prompt": "A.", "skills": []}}'],
    /--agents is not valid: a: .*"skills"/,
  ],
  [
    'a subagent with both names of a field',
    ['--agents', '{"a": {"description": "A.", "prompt": "A.", "maxTurns": 1, "max_steps": 1}}'],
    /--agents is not valid: a: .*"maxTurns"/,
  ],
  [
    'a subagent with a name that is none',
    ['--agents', '{"a b": {"description": "A.", "prompt": "A."}}'],
    /--agents is not valid: a b: must have 1 to 64 letters/,
  ],
  ['subagents that are a list', ['--agents', '[]'], /--agents is not valid: /],
  ['an image that is none', ['-i', '/dev/null'], /--image \/dev\/null cannot be sent: it is not a file\./],
  ['an answer in no directory', ['-o', 'none/answer.txt'], /answer\.txt cannot be written \(ENOENT\)/],
  ['an unknown effort', ['--effort', 'heroic'], /--effort is not valid: /],
  [
    'an unknown tool',
    ['--tools', 'Rope'],
    /--tools: one of the names is not a tool of this server; the tools are Bash/,
  ],
  ['a rule that is none', ['--disallowed-tools', '((('], /--disallowed-tools: .* is not a rule/],
])('%s is exit code 2, and leaves no conversation', async (_, args, sentence) => {
  const before = await ids()
  const { code, stderr } = await print(...args, 'hello')
  expect(stderr).toMatch(sentence)
  expect(code).toBe(2)
  expect(await ids()).toEqual(before)
})
