/**
 * Requests of all kinds at once, answered by two clients at a time, under random actions, deadlines, kills and a disk that
 * is full or slow. The rules of the log are checked by the bench: each request has one end, and each call one result.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import type { AnswerRequest, OpenRequest } from '../../src/contract/request.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { createAskUserQuestion } from '../../src/tools/ask-user-question.ts'
import type { TaskAccess } from '../../src/tools/task/task-access.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { answersIn, openedIn } from '../support/answering.ts'
import { openIn } from '../support/log-rules.ts'
import { effort } from '../support/patience.ts'
import { takeTime } from '../support/take-time.ts'
import { until } from '../support/until.ts'
import type { Action } from './actions.ts'
import { ACTIONS, askCall, carryOut } from './actions.ts'
import { call, eventsOf, only, setBench, tool, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

type Luck = { kind: 'crash' } | { kind: 'stop' } | { kind: 'full' } | { kind: 'slow' }

type Step =
  | Action
  | Luck
  /** Two clients answer one of the requests that wait, with different answers. */
  | { kind: 'respond'; nth: number }
  | { kind: 'hooks'; on: boolean }
  /** Waits until a client is asked to execute a call, so that one plan certainly has it. */
  | { kind: 'wait_for_client_tool' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Step>[]>(
    ...ACTIONS,
    { weight: 30, arbitrary: fc.record({ kind: fc.constant('respond' as const), nth: fc.nat(5) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('hooks' as const), on: fc.boolean() }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('crash', 'stop', 'full', 'slow') }) },
  ),
  { minLength: 10, maxLength: 30, size: 'max' },
)

/** Passes while an answer is stored, and while the conversation is closed. */
const SHORT_S = 0.03
const clientTool = (name: string, more: object = {}) => ({
  name,
  description: '',
  input_schema: { type: 'object' },
  ...more,
})
const CLIENT_TOOLS = [clientTool('look_up'), clientTool('look_up_soon', { timeout: SHORT_S })]

const QUESTION = { question: 'Which one?', header: 'Which', multi_select: false, options: [] }

/** The main agent calls tools of each kind, and subagents that do the same. Deterministic in the order of requests. */
function createScript(): (question: ScriptedQuestion) => ScriptedTurn {
  let count = 0
  const kinds = [
    () => call('look_up', { n: count }),
    () => call('look_up_soon', { n: count }),
    () => call('Form', { n: count }),
    () => call('Act', { n: count, ms: count % 5 }),
  ]
  const some = () => [0, 1].map((at) => kinds[(count + at * 3) % kinds.length]!())
  const task = (run_in_background: boolean) =>
    call('Task', { description: 'x', prompt: `task ${count}`, subagent_type: 'general-purpose', run_in_background })
  return ({ text }) => {
    count += 1
    if (count > 60) return { text: 'Enough.' }
    if (text.includes('You are a subagent')) return count % 3 === 0 ? { text: `Said ${count}.` } : { calls: some() }
    if (count % 5 === 4) return { text: 'So far.' }
    if (count % 5 === 1) return { calls: [task(false), task(true), task(false)] }
    return { calls: count % 5 === 2 ? [askCall(), ...some()] : some() }
  }
}

/** What a client sends; `mark` is found in the log again where the kind has room for it. */
function answerTo(request: OpenRequest, mark: string): AnswerRequest {
  switch (request.kind) {
    case 'permission': {
      const left = request.payload.tool_uses.filter(({ decision }) => decision === undefined)
      const decisions = left.map(({ tool_use_id, input_hash }) => {
        return { tool_use_id, input_hash, behavior: 'allow' as const }
      })
      return { kind: 'permission', decisions }
    }
    case 'question':
    case 'elicitation':
      return { kind: request.kind, answers: { '0': mark } }
    case 'client_tool':
      return { kind: 'client_tool', output: mark, is_error: false }
    case 'network':
      return { kind: 'network', behavior: 'deny', remember: false }
    case 'hook':
      return { kind: 'hook', text: mark }
  }
}

/** The marks of what was accepted and refused. What failed with the disk, or with a kill, may be stored or not. */
class Clients {
  readonly accepted: string[] = []
  readonly refused: string[] = []
  #count = 0

  async respond({ requests }: Conversation, nth: number): Promise<void> {
    const open = requests.list()
    const request = open[nth % Math.max(open.length, 1)]
    if (request) await Promise.all([this.#answer(requests, request), this.#answer(requests, request)])
  }

  async #answer(requests: Conversation['requests'], request: OpenRequest): Promise<void> {
    const mark = `mark-${++this.#count}-`
    const isMarked = request.kind !== 'permission' && request.kind !== 'hook'
    try {
      await requests.answer(request.request_id, answerTo(request, mark))
      if (isMarked) this.accepted.push(mark)
    } catch (error) {
      expect(error).toBeInstanceOf(Problem)
      const { code } = error as Problem
      if (code === 'already_answered' || code === 'request_closed') this.refused.push(mark)
    }
  }
}

const HOOKS = { PreToolUse: [{ hooks: [{ id: 'guard', timeout: 1 }] }] }

type Outcome = { readonly kinds: readonly string[]; readonly ends: readonly string[] }

async function play(plan: readonly Step[]): Promise<Outcome> {
  const act = tool('Act', async (input, { signal }) => {
    await takeTime(Number(input['ms']), signal)
    return { output: 'acted' }
  })
  const form = tool('Form', async (_, { openRequest, toolUseId, signal }) => {
    const answers = (
      await openRequest({ kind: 'elicitation', toolUseId, payload: { server: 'forms', questions: [QUESTION] }, signal })
    )?.answers
    return { output: answers ? 'filled' : 'nobody answered' }
  })
  const store = mortalStore()
  let slow = 0
  const isSlow = () => (slow-- > 0 ? ('slow' as const) : undefined)
  store.fault = isSlow
  const tools = [act, form, createAskUserQuestion()]
  const deps = {
    clientTools: { restAfterMs: 5 },
    createTools: (names: readonly string[], { subagents }: { subagents: TaskAccess }) =>
      names.length > 0 ? [...tools, createTask(subagents)] : [],
  }
  const idle = { afterMs: 4, isShort: () => false }
  await using bench = await setBench({ logs: store, script: createScript(), deps, maxRuns: 2, manager: { idle } })
  const id = await bench.create({ tools: ['Task'], client_tools: CLIENT_TOOLS, max_seconds_per_run: 2 })
  const clients = new Clients()
  const use = async (work: (conversation: Conversation) => Promise<unknown>) => {
    // As a request does: a conversation that is closed meanwhile would not run.
    const release = bench.manager.hold(id)
    try {
      await work(await bench.manager.open(id))
    } catch (error) {
      expect(error).toMatchObject({ name: 'Problem' })
    } finally {
      release()
    }
  }
  await use((live) => live.post(userText('begin', true)))
  for (const step of plan) {
    if (step.kind === 'crash') await bench.restart({ kill: true, between: store.die })
    else if (step.kind === 'stop') await bench.restart()
    else if (step.kind === 'slow') slow = 5
    else if (step.kind === 'full') {
      store.fault = () => 'storage_full'
      await takeTime(5)
      store.fault = isSlow
    } else if (step.kind === 'respond') await use((live) => clients.respond(live, step.nth))
    else if (step.kind === 'hooks')
      await use(({ clientHooks }) => clientHooks.register('guard', { hooks: step.on ? HOOKS : {} }))
    else if (step.kind === 'wait_for_client_tool')
      await use((live) => until('a client tool', () => hasAskedClient(live)))
    else await use((live) => carryOut(live, step))
  }
  bench.manager.hold(id)
  const last = await bench.manager.open(id)
  await expectListed(last)
  await expect.poll(() => last.state.status, { interval: 10 }).not.toBe('running')
  await endAll(last)
  const events = await eventsOf(last)
  const stored = JSON.stringify(only(events, 'RequestAnswered'))
  expect(clients.accepted.filter((mark) => !stored.includes(mark))).toEqual([])
  expect(clients.refused.filter((mark) => stored.includes(mark))).toEqual([])
  expectResults(last, events)
  return {
    kinds: only(events, 'RequestOpened').map(({ kind }) => kind),
    ends: only(events, 'RequestClosed').map(({ reason }) => reason),
  }
}

/** On a loaded machine the time limit of a run can come before its first call of a client tool: then the next run has it. */
async function hasAskedClient(live: Conversation): Promise<boolean> {
  if (openedIn(await eventsOf(live), 'client_tool').length > 0) return true
  if (live.state.status !== 'running') await live.run().catch(() => {}) // it waits, or runs already
  return false
}

/** What is listed is what waits according to the log, once nothing is being stored; a run may wait inside for a form. */
async function expectListed(live: Conversation): Promise<void> {
  const listed = () =>
    live.requests
      .list()
      .flatMap(({ kind, request_id }) => (kind === 'hook' ? [] : [request_id]))
      .toSorted()
  await expect
    .poll(
      async () => {
        for (const { kind, request_id } of live.requests.list())
          if (kind === 'hook' || kind === 'elicitation')
            await live.requests.answer(request_id, GIVEN[kind]).catch(() => {}) // it has ended
        const waiting = openIn(await eventsOf(live)).toSorted()
        return live.state.status !== 'running' && JSON.stringify(listed()) === JSON.stringify(waiting)
      },
      { interval: 10 },
    )
    .toBe(true)
}

const GIVEN = {
  hook: { kind: 'hook', text: '' },
  elicitation: { kind: 'elicitation', answers: { '0': 'this one' } },
} as const

/** Interrupts until no call is open: the next run stores the results that a full disk has refused. */
async function endAll(live: Conversation): Promise<void> {
  await expect
    .poll(async () => {
      await live.pause({ interrupt: true })
      const left = live.state.subagents.length + live.state.openCalls.length
      if (left > 0) await live.run().catch(() => {}) // it waits, or runs already
      return left
    })
    .toBe(0)
}

/** What a client has sent is the result of its call. */
function expectResults({ state }: Conversation, events: Awaited<ReturnType<typeof eventsOf>>): void {
  expect(state.requests).toEqual([])
  const results = new Map(only(events, 'ToolResult').map((event) => [event.tool_use_id, event]))
  const calls = new Map(openedIn(events, 'client_tool').map((event) => [event.request_id, event.tool_use_ids[0]!]))
  for (const { request_id, answer } of answersIn(events, 'client_tool'))
    expect(results.get(calls.get(request_id)!)?.output).toBe(answer.output)
}

test('property: whatever happens, each request has one end, and what was accepted is in the log', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      const { kinds, ends } = await play(plan)
      for (const each of [...kinds, ...ends]) seen.add(each)
    }),
    { numRuns: effort(8, 300), examples: [[[]], [[{ kind: 'wait_for_client_tool' }]]] },
  )
  expect([...seen]).toContain('client_tool')
})
