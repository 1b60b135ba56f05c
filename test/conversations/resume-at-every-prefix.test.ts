/**
 * A log can end after any event: resumed there, its history is one that each provider accepts. The log is a recorded one,
 * with parallel calls, decisions, a question, a call of a client, a subagent, an interrupt, and messages while the agent works.
 */
import { afterAll, expect, test } from 'vitest'
import { findFaults } from '../../src/agent/find-faults.ts'
import { History } from '../../src/agent/history/history.ts'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import { answer } from '../../src/state/drafts.ts'
import { Problem } from '../../src/contract/problem.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import type { State } from '../../src/state/state.ts'
import { query, tool } from '../../src/index.ts'
import type { LlmRequest, ModelMessage } from '../../src/llm/llm.ts'
import { ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, OPENAI_RESPONSES } from '../../src/llm/providers.ts'
import { MESSAGES } from '../../src/llm/scripted/messages-answer.ts'
import { RESPONSES } from '../../src/llm/scripted/responses-answer.ts'
import type { ScriptedMessage, ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expectWholeTurns } from './wire.ts'
import { runId, stored } from './events.ts'

const home = await mkdtemp(join(tmpdir(), 'agent-server-prefixes-'))
const model = await startScriptedModel(({ body }) => turnFor(body))
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

const QUESTION = { question: 'Which?', header: 'One', options: [{ label: 'A' }, { label: 'B' }] }
const bash = (command: string) => ({ name: 'Bash', arguments: { command } })

/** The task of the subagent. */
const CHILD = 'make a directory'

/** Three calls at once, a question with a client tool and a subagent, and a command that is interrupted. */
function turnFor({ messages }: ScriptedQuestion['body']) {
  const answers = messages.filter(({ role }) => role === 'assistant').length
  const said = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
  if (said.includes(CHILD)) return answers === 0 ? { calls: [bash('mkdir of-child')] } : { text: 'Made.' }
  if (messages.at(-1)?.role === 'tool' && answers === 1)
    return {
      text: 'Once more.',
      calls: [
        { name: 'AskUserQuestion', arguments: { questions: [QUESTION] } },
        { name: 'own', arguments: {} },
        { name: 'Task', arguments: { description: 'a job', prompt: CHILD, subagent_type: 'general-purpose' } },
      ],
    }
  if (said.includes('hang')) return { calls: [bash('sleep 60'), bash('echo never')] }
  if (answers > 0) return { text: 'So far.' }
  return {
    reasoning: 'Three things.',
    calls: [bash('mkdir one'), { name: 'Bash', arguments: 'no JSON' }, bash('mkdir two')],
  }
}

async function record(): Promise<Event[]> {
  const interrupting = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  async function* prompt() {
    yield 'begin'
    await first.promise
    yield 'hang'
    await interrupting.promise
    yield 'and now'
  }
  const asking = query({
    prompt: prompt(),
    options: {
      model: 'scripted',
      baseUrl: model.baseUrl,
      apiKey: 'scripted-model-key',
      persistDir: join(home, 'data'),
      tools: ['Bash', 'AskUserQuestion', 'Task', tool('own', 'Own.', {}, () => 'of the client')],
      allowedTools: ['own', 'Bash(sleep:*)', 'Bash(echo:*)'],
      canUseTool: (_name, input) =>
        JSON.stringify(input).includes('two')
          ? { behavior: 'deny', message: 'No.' }
          : { behavior: 'allow', updatedInput: { command: 'mkdir three' } },
      answerQuestions: () => ({ 'Which?': 'A' }),
    },
  })
  const events: Event[] = []
  for await (const event of asking) {
    if (!('seq' in event)) continue
    events.push(event)
    if (event.type === 'Result' && event.parent_tool_use_id === undefined) first.resolve()
    if (event.type !== 'ToolUse' || !JSON.stringify(event.input).includes('sleep')) continue
    interrupting.resolve()
    await asking.interrupt()
  }
  return events
}

/** The log as the next start of the server continues it. */
class Log {
  state: State = { ...EMPTY_STATE, id: runId }
  readonly events: Event[] = []

  constructor(events: readonly Event[]) {
    for (const event of events) this.#add(event)
  }

  /** False if the server refuses it. */
  apply(intent: Intent): boolean {
    const drafts = decide(this.state, intent)
    if (drafts instanceof Problem) return false
    this.append(drafts)
    return true
  }

  append(drafts: readonly EventDraft[]): void {
    for (const draft of drafts) this.#add(stored(draft, this.state.lastSeq + 1))
  }

  #add(event: Event): void {
    this.events.push(event)
    this.state = fold(this.state, event)
  }
}

const now = Date.parse('2030-01-01T00:00:00.000Z')
const message: Intent = {
  kind: 'message',
  content: [{ type: 'text', text: 'Go on.' }],
  run: true,
  begun: [],
  newRunId: runId,
  now,
}

/** What the model is sent; undefined if the session cannot be continued so. */
function resumed(events: readonly Event[], intent: Intent): readonly ModelMessage[] | undefined {
  const log = new Log(events)
  if (!log.apply({ kind: 'recover', why: 'server_restart', newRunId: runId, now })) return undefined
  if (!log.apply(intent)) return undefined
  // Calls that were allowed and have not begun run first.
  for (const call of log.state.openCalls) log.append([answer(call, 'failed', 'It ran.')])
  const history = new History((_name, output) => (typeof output === 'string' ? output : JSON.stringify(output)))
  for (const event of log.events) history.add(event)
  return history.messagesToSend()
}

const config = { model: 'some-model' }
const at = (provider: 'openai' | 'anthropic' | 'openai_responses') => ({
  provider,
  baseUrl: 'http://localhost/v1',
  model: 'some-model',
  query: {},
  headers: {},
})

// oxlint-disable-next-line typescript/no-explicit-any -- bodies as they are sent
const bodyOf = (bytes: Buffer): any => JSON.parse(bytes.toString())

/** Throws unless each provider accepts the messages. */
function expectValid(messages: readonly ModelMessage[]): void {
  const request: LlmRequest = { system: 'Be brief.', messages, tools: [] }
  const chat = at('openai')
  const dialect = CHAT_COMPLETIONS.firstDialect(chat)
  for (const alternates of [false, true]) {
    const body = bodyOf(CHAT_COMPLETIONS.createWriter(config, chat)(request, { ...dialect, alternates }))
    const said: ScriptedMessage[] = body.messages.slice(1)
    expectWholeTurns(said)
    expect(['user', 'tool']).toContain(said.at(-1)?.role)
    if (!alternates) continue
    const roles = said.map(({ role }) => role)
    expect(
      roles.filter((role, place) => role !== 'tool' && role === roles[place - 1]),
      roles.join(' '),
    ).toEqual([])
  }
  const anthropic = at('anthropic')
  const asMessages = bodyOf(
    ANTHROPIC_MESSAGES.createWriter(config, anthropic)(request, ANTHROPIC_MESSAGES.firstDialect(anthropic)),
  )
  expect(MESSAGES.faultIn?.(asMessages)).toBeUndefined()
  expect(asMessages.messages[0].role).toBe('user')
  const blocks = asMessages.messages.flatMap(
    ({ content }: { content: { type: string; id?: string; tool_use_id?: string }[] }) => content,
  )
  expectNoOrphans(idsOf(blocks, 'tool_use', 'id'), idsOf(blocks, 'tool_result', 'tool_use_id'))
  const responses = at('openai_responses')
  const asInput = bodyOf(
    OPENAI_RESPONSES.createWriter(config, responses)(request, OPENAI_RESPONSES.firstDialect(responses)),
  )
  expect(RESPONSES.faultIn?.(asInput)).toBeUndefined()
  expectNoOrphans(
    idsOf(asInput.input, 'function_call', 'call_id'),
    idsOf(asInput.input, 'function_call_output', 'call_id'),
  )
}

const idsOf = (items: readonly Record<string, unknown>[], type: string, name: string) =>
  items.filter((item) => item['type'] === type).map((item) => item[name])

function expectNoOrphans(calls: readonly unknown[], results: readonly unknown[]): void {
  expect(results).toEqual(calls)
  expect(new Set(calls).size).toBe(calls.length)
}

test('resumed at every prefix of a recorded log, with a message or without one, each provider accepts the history', async () => {
  const events = await record()
  expect(events.map(({ type }) => type)).toContain('SubagentStart')
  const kinds = events.flatMap((event) => (event.type === 'RequestAnswered' ? [event.kind] : []))
  expect(kinds).toEqual(expect.arrayContaining(['permission', 'question', 'client_tool']))
  expect(events.filter(({ type }) => type === 'ToolUse').length).toBeGreaterThanOrEqual(7)
  let continued = 0
  for (let length = 1; length <= events.length; length++) {
    const prefix = events.slice(0, length)
    for (const intent of [message, { kind: 'run', newRunId: runId } as const]) {
      const messages = resumed(prefix, intent)
      if (!messages) continue
      continued++
      expect(findFaults({ messages }), `after ${length} events`).toEqual([])
      // A run of a conversation without a message has nothing to say.
      if (messages.length > 0) expectValid(messages)
    }
  }
  // Only a run is refused, while calls wait for a decision or an answer.
  expect(continued).toBeGreaterThan(events.length)
})
