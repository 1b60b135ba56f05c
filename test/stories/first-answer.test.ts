/** One conversation in several clients: an approval is answered in any of them, the first answer wins, and the others report it. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { query } from '../../src/index.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { KEYS, Terminal } from '../cli/chat/support/terminal.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { CommandOptions } from '../support/command.ts'
import { runCommand, startCommand } from '../support/command.ts'
import { commandLine, KEY } from '../support/server.ts'
import { LineProcess } from '../support/story/line-process.ts'

const option = (label: string) => ({ label, description: `About ${label}.` })
const QUESTION = { question: 'Which one?', header: 'One', options: ['A', 'B', 'C'].map(option), multiSelect: false }
const ask: ScriptedTurn = { calls: [{ name: 'AskUserQuestion', arguments: { questions: [QUESTION] } }] }
const COMMANDS = ['touch one', 'touch two', 'touch three', 'touch four'] as const

let stage: Stage
let work: string
beforeAll(async () => {
  const replies = [
    { when: 'all', turns: [...COMMANDS.map((command) => bash(command)), ask, { text: 'All is done.' }] },
    { when: 'two', turns: [bash('touch one'), ask, { text: 'Both are done.' }] },
  ]
  stage = await setStage({ replies })
  work = join(stage.server.home, 'work')
  await mkdir(work)
})
afterAll(() => stage[Symbol.asyncDispose]())

const options = (): CommandOptions & { env: Record<string, string> } => ({
  cwd: work,
  env: {
    PATH: process.env['PATH'] ?? '',
    HOME: stage.server.home,
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: stage.model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
    OPENHANDS_DATA_DIR: stage.server.dataDir,
    OPENHANDS_MASTER_KEY: KEY,
  },
})
const FORMATS = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--ask', 'stdin']
const message = (content: string) => ({ type: 'user', message: { role: 'user', content } })
const newest = async () => (await stage.server.call('GET', '/conversations?limit=1')).body.items[0]

type Decision = { readonly behavior: 'allow' | 'deny' }
// oxlint-disable-next-line typescript/no-explicit-any -- an event as it was printed
const decide = ({ request_id, tool_uses }: any, decision: Decision) => {
  const { tool_use_id, input_hash } = tool_uses[0]
  return { request_id, decisions: [{ tool_use_id, input_hash, ...decision }] }
}

describe('the same approval in the chat, in a headless run and over REST', () => {
  let headless: LineProcess
  let chat: Terminal
  let id: string

  beforeAll(async () => {
    headless = new LineProcess(commandLine(['-p', ...FORMATS]), options())
    headless.write(message('do it all'))
    id = (await headless.next(({ type }) => type === 'UserMessage')).conversation_id
    chat = new Terminal(commandLine(['chat', '-r', id]), options())
  })
  afterAll(async () => {
    await chat[Symbol.asyncDispose]()
    await headless[Symbol.asyncDispose]()
  })

  const byRest = async (request: ReturnType<typeof decide>) => {
    const { request_id, decisions } = request
    return await stage.server.call('POST', `/conversations/${id}/permissions/${request_id}`, { decisions })
  }
  const byLine = async (frame: object) => {
    headless.write(frame)
    return await headless.next(({ type }) => type === 'ack' || type === 'problem')
  }
  const asked = async (command: string) => {
    const request = await headless.next(({ type }) => type === 'PermissionRequest')
    expect(request.tool_uses[0].input).toEqual({ command })
    const isShown = () => chat.text.includes(`$ ${command}`) && chat.text.includes('[y] yes')
    await chat.until(isShown, `to ask about ${command}`)
    expect((await stage.server.call('GET', `/conversations/${id}/permissions`)).body.items).toMatchObject([
      { request_id: request.request_id },
    ])
    return request
  }
  const saysTimes = (text: string, times: number) =>
    chat.until(() => chat.text.split(text).length === times + 1, `to say ${times} times: ${text}`)

  test('REST is first', async () => {
    const request = await asked(COMMANDS[0])
    expect((await byRest(decide(request, { behavior: 'allow' }))).status).toBe(200)
    await saysTimes('Bash was approved in another client.', 1)
    const late = await byLine({ type: 'permission', id: 'late', ...decide(request, { behavior: 'deny' }) })
    expect(late).toMatchObject({ type: 'problem', id: 'late', error: 'already_decided' })
  })

  test('the chat is first', async () => {
    const request = await asked(COMMANDS[1])
    chat.press('n')
    const { behavior } = await headless.next((event) => isDecision(event, request))
    expect(behavior).toBe('deny')
    const late = decide(request, { behavior: 'allow' })
    expect(await byRest(late)).toMatchObject({ status: 409, body: { error: 'already_decided' } })
    expect(await byLine({ type: 'permission', ...late })).toMatchObject({ type: 'problem', error: 'already_decided' })
  })

  test('the headless run is first', async () => {
    const request = await asked(COMMANDS[2])
    const ack = await byLine({ type: 'permission', ...decide(request, { behavior: 'allow' }) })
    expect(ack).toMatchObject({ type: 'ack', of: 'permission' })
    await saysTimes('Bash was approved in another client.', 2)
    expect(await byRest(decide(request, { behavior: 'deny' }))).toMatchObject({
      status: 409,
      body: { error: 'already_decided' },
    })
  })

  test('all answer at once: one answer counts, and each of the others is reported as late', async () => {
    const request = await asked(COMMANDS[3])
    chat.press('y')
    const [rest, line] = await Promise.all([
      byRest(decide(request, { behavior: 'deny' })),
      byLine({ type: 'permission', ...decide(request, { behavior: 'deny' }) }),
    ])
    const { behavior } = await headless.next((event) => isDecision(event, request))
    const isDenied = behavior === 'deny'
    expect([rest.status, line.type]).toEqual(isDenied ? [200, 'ack'] : [409, 'problem'])
    if (isDenied) await chat.shows(/Bash was denied in another client\.|Another client answered first\./)
    const { question_id } = await headless.next(({ type }) => type === 'UserQuestion')
    await chat.shows('or type another answer')
    chat.press('1')
    const path = `/conversations/${id}/questions/${question_id}`
    const [answered, told] = await Promise.all([
      stage.server.call('POST', path, { answers: { '0': 'B' } }),
      byLine({ type: 'answer', question_id, answers: { '0': 'C' } }),
    ])
    const { answers } = await headless.next(({ type }) => type === 'UserAnswer')
    const [winner] = answers['Which one?']
    expect(answered.status).toBe(winner === 'B' ? 200 : 409)
    expect(told.type).toBe(winner === 'C' ? 'ack' : 'problem')
    if (winner !== 'A') await chat.shows(/The question was answered in another client: |Another client answered first/)
  })

  test('the run ends in all of them, with one decision for each call', async () => {
    expect(await headless.next(({ type }) => type === 'outcome')).toMatchObject({ exit_code: 0 })
    await chat.shows('All is done.')
    // A key that came too late for its panel is in the prompt.
    chat.press(KEYS.ctrlC, KEYS.ctrlD)
    expect((await chat.ended()).exitCode).toBe(0)
    const decisions = await stage.events(id, 'types=PermissionDecision')
    expect(decisions.map(({ decided_by }) => decided_by)).toEqual(COMMANDS.map(() => 'user'))
    expect(decisions.slice(0, 3).map(({ behavior }) => behavior)).toEqual(['allow', 'deny', 'allow'])
    expect(await stage.events(id, 'types=UserAnswer')).toHaveLength(1)
  })
})

// oxlint-disable-next-line typescript/no-explicit-any -- events as they were printed
const isDecision = (event: any, { request_id }: any) =>
  event.type === 'PermissionDecision' && event.request_id === request_id

test('query() continues when another client has answered, and its approver sees an aborted signal', async () => {
  const aborted: string[] = []
  const undecided = (signal: AbortSignal, what: string) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted.push(what)
        reject(new Error('late'))
      })
    })
  const asking = query({
    prompt: 'the two',
    options: {
      server: { baseUrl: stage.server.url, apiKey: KEY },
      model: 'scripted',
      baseUrl: stage.model.baseUrl,
      apiKey: 'scripted-model-key',
      tools: ['Bash', 'AskUserQuestion'],
      canUseTool: (name, _, { signal }) => undecided(signal, name),
      answerQuestions: (_, { signal }) => undecided(signal, 'question'),
    },
  })
  for await (const event of asking) {
    const path = `/conversations/${event.conversation_id}`
    if (event.type === 'PermissionRequest')
      await stage.server.call('POST', `${path}/approve`, { request_id: event.request_id })
    if (event.type === 'UserQuestion')
      await stage.server.call('POST', `${path}/questions/${event.question_id}`, { answers: { '0': 'A' } })
    if (event.type === 'Result') expect(event).toMatchObject({ stop_reason: 'completed', final_text: 'Both are done.' })
  }
  expect(aborted).toEqual(['Bash', 'question'])
})

describe('a headless run', () => {
  test('with --ask clients waits for other clients', async () => {
    const { finished, said } = startCommand(['-p', '--ask', 'clients', 'the two'], options())
    await said('conversation ')
    const path = `/conversations/${(await newest()).id}`
    const first = async (kind: string) => {
      await expect.poll(async () => (await stage.server.call('GET', path + kind)).body.items).toHaveLength(1)
      return (await stage.server.call('GET', path + kind)).body.items[0]
    }
    await stage.server.call('POST', `${path}/approve`, { request_id: (await first('/permissions')).request_id })
    const { question_id } = await first('/questions')
    await stage.server.call('POST', `${path}/questions/${question_id}`, { answers: { '0': 'A' } })
    expect(await finished).toMatchObject({ code: 0, stdout: 'Both are done.\n' })
  })

  test('with --ask stdin is alone when stdin has ended: what waits is denied', async () => {
    const input = JSON.stringify(message('the two'))
    const { code, stdout, stderr } = await runCommand(['-p', ...FORMATS], { ...options(), input })
    expect(code).toBe(3)
    expect(stderr).toContain('1 call was denied, because nobody can approve: Bash')
    expect(stdout).toContain('Nobody can answer')
  })

  test('is interrupted by a line while it waits, and what waited is not denied again at the end', async () => {
    await using headless = new LineProcess(commandLine(['-p', ...FORMATS]), options())
    headless.write(message('the two'))
    await headless.next(({ type }) => type === 'PermissionRequest')
    headless.write({ type: 'pause', id: 'stop', interrupt: true })
    expect(await headless.next(({ type }) => type === 'ack')).toMatchObject({ id: 'stop', of: 'pause' })
    const outcome = await headless.next(({ type }) => type === 'outcome')
    expect(outcome).toMatchObject({ stop_reason: 'paused', exit_code: 3 })
    expect(outcome).not.toHaveProperty('denied')
    headless.write(message('the all'))
    await headless.next(
      ({ type, tool_uses }) => type === 'PermissionRequest' && tool_uses[0].input.command === COMMANDS[0],
    )
    const ended = headless.end()
    expect((await headless.next(({ type }) => type === 'outcome')).denied).toHaveLength(COMMANDS.length)
    expect(await ended).toBe(3)
  })

  test('denies what waits when a line is wrong, and says which line and why', async () => {
    const lines = [message('the two'), { type: 'permission', request_id: 'x', decisions: [] }]
    const input = lines.map((line) => JSON.stringify(line)).join('\n')
    const { code, stderr } = await runCommand(['-p', ...FORMATS], { ...options(), input })
    expect(code).toBe(2)
    expect(stderr).toMatch(/agent-server: line 2 of stdin is not a valid answer: request_id .*decisions/)
  })

  test('without --ask takes no answers', async () => {
    const input = JSON.stringify({ type: 'pause' })
    const { code, stderr } = await runCommand(['-p', '--input-format', 'stream-json'], { ...options(), input })
    expect(code).toBe(2)
    expect(stderr).toContain('line 1 of stdin is an answer, which needs --ask stdin.')
  })
})
