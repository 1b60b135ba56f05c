/**
 * A log with subagents can end after any event, or be forked there: whatever follows, each call gets one result, each
 * subagent one end, and nothing waits for what cannot come. The log is a recorded one, with subagents of subagents, in
 * the background, and with decisions.
 */
import { beforeAll, expect, test } from 'vitest'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import { Problem } from '../../src/contract/problem.ts'
import { createForkedLog } from '../../src/conversations/forked-log.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import type { State } from '../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { bash, setStage } from '../support/agent.ts'
import { createPlanner, expectWhole, ofSubagents, task } from '../support/subagents.ts'
import { stored } from './events.ts'
import { allowFirst } from '../support/answering-over-http.ts'

async function record(): Promise<Event[]> {
  const planner = createPlanner()
  const boss = { description: 'Delegates.', prompt: 'You delegate.', tools: ['Task', 'Bash'] }
  const worker = { description: 'Works.', prompt: 'You work.' }
  const toBoss = task('middle part', { subagent_type: 'boss' })
  planner.plan = {
    'whole thing': [
      { calls: [toBoss, task('behind it', { run_in_background: true }), task('beside it')] },
      bash('touch main'),
      { text: 'Main done.' },
    ],
    'middle part': [{ calls: [task('lowest part'), task('lowest part')] }, bash('touch middle'), { text: 'Middle.' }],
    'lowest part': [bash('touch lowest'), { text: 'Lowest.' }],
    'behind it': [bash('touch behind'), bash('echo seen'), { text: 'Behind.' }],
    'beside it': [bash('echo only'), { text: 'Beside.' }],
    'Behind.': [{ text: 'Read.' }, { text: 'Read.' }],
  }
  await using stage = await setStage(planner.script)
  const { server } = stage
  const limits = { agents: { boss, worker }, subagent_limits: { max_depth: 2 } }
  const id = await stage.create({ ...limits, tools: ['Bash'], permission_mode: 'default' })
  const message = { role: 'user', content: 'whole thing' }
  await server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  const decideOne = async () => {
    await allowFirst(server, id)
    const { status } = (await server.call('GET', `/conversations/${id}`)).body
    return [status, ofSubagents(await stage.events(id), 'Result').length]
  }
  for (let last = ''; last !== 'idle 5';) last = (await decideOne()).join(' ')
  return await stage.events(id)
}

let recorded: Event[] = []
beforeAll(async () => {
  recorded = await record()
})

/** The log as a server continues it. */
function opened(events: readonly Event[]) {
  let state: State = EMPTY_STATE
  const log: Event[] = []
  const add = (event: Event) => {
    log.push(event)
    state = fold(state, event)
  }
  events.forEach(add)
  const append = (drafts: readonly EventDraft[]) =>
    drafts.forEach((draft) => add({ ...stored(draft, state.lastSeq + 1), conversation_id: state.id }))
  return {
    log,
    append,
    state: () => state,
    apply(intent: Intent): EventDraft[] {
      const drafts = decide(state, intent)
      if (drafts instanceof Problem) return []
      append(drafts)
      return drafts
    },
  }
}

const now = Date.now()
const recovery = { kind: 'recover', why: 'server_restart', newRunId: uuid7(), now } as const
const interrupt = { kind: 'pause', reason: 'pause', interrupt: true, begun: [], now } as const

/** What a user may do then. */
const ACTIONS: Record<string, readonly Intent[]> = {
  nothing: [],
  run: [{ kind: 'run', newRunId: uuid7() }],
  message: [
    { kind: 'message', content: [{ type: 'text', text: 'Stop.' }], run: true, begun: [], newRunId: uuid7(), now },
  ],
  pause: [{ ...interrupt, interrupt: false }],
  reject: [{ kind: 'reject', reason: 'no', newRunId: uuid7(), now }],
}

/** The `Result` of a run and the status after it are one write, which is on the disk as a whole or not at all. */
const prefixes = () =>
  recorded.flatMap((event, at) => (event.type === 'Result' && !event.parent_tool_use_id ? [] : [at + 1]))

test('the recorded log has all of it', () => {
  expectWhole(recorded)
  expect(ofSubagents(recorded, 'RequestOpened').length).toBeGreaterThan(3)
})

test.each(Object.keys(ACTIONS))('after a restart at any event, and %s, an interruption ends all', (name) => {
  for (const length of prefixes()) {
    const server = opened(recorded.slice(0, length))
    server.apply(recovery)
    expect(server.apply(recovery), `the second restart after ${length} events adds nothing`).toEqual([])
    for (const action of ACTIONS[name] ?? []) server.apply(action)
    server.apply(interrupt)
    const { subagents, openCalls, status } = server.state()
    expect([length, subagents, openCalls]).toEqual([length, [], []])
    expect(status, `after ${length} events`).not.toMatch(/running|waiting/)
    expectWhole(server.log)
  }
})

test('a fork at any event is at rest and whole', async () => {
  for (const length of prefixes()) {
    const log = opened(recorded.slice(0, length))
    const { settings } = log.state()
    const source = {
      conversationId: uuid7(),
      read: async () => ({ events: log.log.map((event) => ({ event, line: '' })), scannedTo: undefined }),
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only events are read
    const plan = { log: source, throughSeq: length, id: uuid7(), cwd: '/w', settings, now } as unknown as Parameters<
      typeof createForkedLog
    >[0]
    const { events, ending } = createForkedLog(plan)
    const copied: Event[] = []
    for await (const event of events) copied.push(event)
    const copy = opened(copied)
    copy.append(ending())
    expect([length, copy.state().subagents, copy.state().openCalls]).toEqual([length, [], []])
    expect(copy.state().status).not.toMatch(/running|waiting/)
    expectWhole(copy.log)
  }
})
