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
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import { answer, approve, requestsOf } from './requests.ts'

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
const decide = ({ request_id, payload }: any, decision: Decision) => {
  const { tool_use_id, input_hash } = payload.tool_uses[0]
  return { request_id, answer: { kind: 'permission', decisions: [{ tool_use_id, input_hash, ...decision }] } }
}
// oxlint-disable-next-line typescript/no-explicit-any -- an event as it was printed
const asks = (kind: RequestKind) => (event: any) => event.type === 'RequestOpened' && event.kind === kind

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

  const byRest = ({ request_id, answer: given }: ReturnType<typeof decide>) =>
    answer(stage.server.call, id, request_id, given)
  const byLine = async (frame: object) => {
    headless.write(frame)
    return await headless.next(({ type }) => type === 'ack' || type === 'problem')
  }
  const asked = async (command: string) => {
    const request = await headless.next(asks('permission'))
    expect(request.payload.tool_uses[0].input).toEqual({ command })
    const isShown = () => chat.text.includes(`$ ${command}`) && chat.text.includes('[y] yes')
    await chat.until(isShown, `to ask about ${command}`)
    expect(await requestsOf(stage.server.call, id, 'permission')).toMatchObject([{ request_id: request.request_id }])
    return request
  }
  const saysTimes = (text: string, times: number) =>
    chat.until(() => chat.text.split(text).length === times + 1, `to say ${times} times: ${text}`)

  test('REST is first', async () => {
    const request = await asked(COMMANDS[0])
    expect((await byRest(decide(request, { behavior: 'allow' }))).status).toBe(200)
    await saysTimes('Bash was approved in another client.', 1)
    const late = await byLine({ type: 'answer', id: 'late', ...decide(request, { behavior: 'deny' }) })
    expect(late).toMatchObject({ type: 'problem', id: 'late', error: 'already_answered' })
  })

  test('the chat is first', async () => {
    const request = await asked(COMMANDS[1])
    chat.press('n')
    const { answer: given } = await headless.next((event) => isAnswer(event, request))
    expect(given.decisions).toMatchObject([{ behavior: 'deny' }])
    const late = decide(request, { behavior: 'allow' })
    expect(await byRest(late)).toMatchObject({ status: 409, body: { error: 'already_answered' } })
    expect(await byLine({ type: 'answer', ...late })).toMatchObject({ type: 'problem', error: 'already_answered' })
  })

  test('the headless run is first', async () => {
    const request = await asked(COMMANDS[2])
    const ack = await byLine({ type: 'answer', ...decide(request, { behavior: 'allow' }) })
    expect(ack).toMatchObject({ type: 'ack', of: 'answer' })
    await saysTimes('Bash was approved in another client.', 2)
    expect(await byRest(decide(request, { behavior: 'deny' }))).toMatchObject({
      status: 409,
      body: { error: 'already_answered' },
    })
  })

  test('all answer at once: one answer counts, and each of the others is reported as late', async () => {
    const request = await asked(COMMANDS[3])
    chat.press('y')
    const [rest, line] = await Promise.all([
      byRest(decide(request, { behavior: 'deny' })),
      byLine({ type: 'answer', ...decide(request, { behavior: 'deny' }) }),
    ])
    const { answer: decided } = await headless.next((event) => isAnswer(event, request))
    const isDenied = decided.decisions[0].behavior === 'deny'
    expect([rest.status, line.type]).toEqual(isDenied ? [200, 'ack'] : [409, 'problem'])
    if (isDenied) await chat.shows(/Bash was denied in another client\.|Another client answered first\./)
    const question = await headless.next(asks('question'))
    await chat.shows('or type another answer')
    chat.press('1')
    const { request_id } = question
    const [answered, ack] = await Promise.all([
      answer(stage.server.call, id, request_id, { kind: 'question', answers: { '0': 'B' } }),
      byLine({ type: 'answer', request_id, answer: { kind: 'question', answers: { '0': 'C' } } }),
    ])
    const { answer: given } = await headless.next((event) => isAnswer(event, question))
    const [winner] = given.answers['Which one?']
    expect(answered.status).toBe(winner === 'B' ? 200 : 409)
    expect(ack.type).toBe(winner === 'C' ? 'ack' : 'problem')
    if (winner !== 'A') await chat.shows(/The question was answered in another client: |Another client answered first/)
  })

  test('the run ends in all of them, with one decision for each call', async () => {
    expect(await headless.next(({ type }) => type === 'outcome')).toMatchObject({ exit_code: 0 })
    await chat.shows('All is done.')
    // A key that came too late for its panel is in the prompt.
    chat.press(KEYS.ctrlC, KEYS.ctrlD)
    expect((await chat.ended()).exitCode).toBe(0)
    const answers = await stage.events(id, 'types=RequestAnswered')
    expect(answers.map(({ kind, answered_by }) => [kind, answered_by])).toEqual([
      ...COMMANDS.map(() => ['permission', 'user']),
      ['question', 'user'],
    ])
    const decisions = answers.slice(0, 3).map(({ answer: { decisions: made } }) => made)
    expect(decisions).toMatchObject([[{ behavior: 'allow' }], [{ behavior: 'deny' }], [{ behavior: 'allow' }]])
  })
})

// oxlint-disable-next-line typescript/no-explicit-any -- events as they were printed
const isAnswer = (event: any, { request_id }: any) =>
  event.type === 'RequestAnswered' && event.request_id === request_id

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
    const { conversation_id: id } = event
    if (event.type === 'RequestOpened' && event.kind === 'permission')
      await approve(stage.server.call, id, event.request_id)
    if (event.type === 'RequestOpened' && event.kind === 'question')
      await answer(stage.server.call, id, event.request_id, { kind: 'question', answers: { '0': 'A' } })
    if (event.type === 'Result') expect(event).toMatchObject({ stop_reason: 'completed', final_text: 'Both are done.' })
  }
  expect(aborted).toEqual(['Bash', 'question'])
})

describe('a headless run', () => {
  test('with --ask clients waits for other clients', async () => {
    const { finished, said } = startCommand(['-p', '--ask', 'clients', 'the two'], options())
    await said('conversation ')
    const { call } = stage.server
    const { id } = await newest()
    const first = async (kind: RequestKind): Promise<string> => {
      await expect.poll(() => requestsOf(call, id, kind)).toHaveLength(1)
      return (await requestsOf(call, id, kind))[0].request_id
    }
    await approve(call, id, await first('permission'))
    await answer(call, id, await first('question'), { kind: 'question', answers: { '0': 'A' } })
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
    await headless.next(asks('permission'))
    headless.write({ type: 'pause', id: 'stop', interrupt: true })
    expect(await headless.next(({ type }) => type === 'ack')).toMatchObject({ id: 'stop', of: 'pause' })
    const outcome = await headless.next(({ type }) => type === 'outcome')
    expect(outcome).toMatchObject({ stop_reason: 'paused', exit_code: 3 })
    expect(outcome).not.toHaveProperty('denied')
    headless.write(message('the all'))
    await headless.next(
      (event) => asks('permission')(event) && event.payload.tool_uses[0].input.command === COMMANDS[0],
    )
    const ended = headless.end()
    expect((await headless.next(({ type }) => type === 'outcome')).denied).toHaveLength(COMMANDS.length)
    expect(await ended).toBe(3)
  })

  test('denies what waits when a line is wrong, and says which line and why', async () => {
    const wrong = { type: 'answer', request_id: 'x', answer: { kind: 'permission', decisions: [] } }
    const lines = [message('the two'), wrong]
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
