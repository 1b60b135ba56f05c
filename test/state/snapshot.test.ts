import { describe, expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { EVENT_VERSION } from '../../src/contract/events/event.ts'
import { decideRecover } from '../../src/state/run-end.ts'
import { isShort, readAtRest, readSnapshot, writeSnapshot } from '../../src/state/snapshot.ts'
import type { State, Subagent } from '../../src/state/state-shape.ts'
import { NO_AGENT } from '../../src/state/state-shape.ts'
import { stateOf } from '../../src/state/subagents.ts'
import { PermissionMode } from '../../src/contract/values/permission.ts'
import { Status } from '../../src/contract/events/status.ts'
import {
  asked,
  conversationId,
  folded,
  runId,
  status,
  stored,
  systemInit,
  toolUse,
  userMessage,
} from '../conversations/events.ts'

/** The state as the next start reads it: JSON in between. */
async function restarted(state: State): Promise<State> {
  let json = ''
  const snapshots = {
    read: async () => JSON.parse(json) as unknown,
    write: async (_id: string, snapshot: object) => void (json = JSON.stringify(snapshot)),
  }
  await writeSnapshot({ snapshots }, state)
  const read = await readSnapshot({ snapshots }, conversationId)
  if (!read) throw new Error('the snapshot was not used')
  return read
}

const newRunId = '018f0000-0000-7000-8000-00000000000e'

const WORKING: Subagent = {
  toolUseId: 'task',
  callerId: undefined,
  agentId: runId,
  name: 'helper',
  tools: ['Bash'],
  deny: [],
  model: undefined,
  mode: undefined,
  isBackground: true,
  firstSeq: 2,
  agent: NO_AGENT,
}

const waiting = folded([status('running'), toolUse('a'), asked(['a']), status('waiting_for_confirmation', 'running')])

test('after a restart a subagent has nothing of the main agent: neither its request nor its run', async () => {
  const before: State = { ...waiting, subagents: [WORKING] }
  const after = await restarted(before)
  expect(after.request?.id).toBe(waiting.request?.id)
  const [subagent] = after.subagents
  const own = stateOf(after, subagent!)
  for (const name of ['run', 'request', 'answered', 'forgotten'] as const) expect(own[name], name).toBeUndefined()
})

test('what a restart closes does not depend on the snapshot: a request of the main agent still waits', async () => {
  const before: State = { ...waiting, subagents: [WORKING] }
  const recover = { kind: 'recover', why: 'server_restart', newRunId, now: Date.parse(before.updatedAt) } as const
  const events = decideRecover(await restarted(before), recover)
  expect(events).toEqual(decideRecover(before, recover))
  expect(events.map(({ type }) => type)).toEqual(['Result'])
})

/** Each field of the type has a value: a new one is a type error here, until it has one. */
type Whole<T> = { [K in keyof T]-?: NonNullable<T[K]> }

const USAGE = { input_tokens: 1, output_tokens: 2, cached_tokens: 3, reasoning_tokens: 4 }
const AT = '2026-01-31T12:00:00.000Z'
const ID = '018f0000-0000-7000-8000-00000000000f'
const RULES = { allow: ['Bash(ls)'], ask: ['Bash(cp:*)'], deny: ['Bash(rm:*)'] }

const RUN: Whole<NonNullable<State['run']>> = {
  id: runId,
  startedAt: AT,
  startSeq: 3,
  steps: 4,
  maxSteps: 5,
  outputSchema: { type: 'object' },
  outputRequests: 6,
  toolChoice: 'required',
  activeSince: AT,
  activeMs: 7,
  usage: { m: USAGE },
  costUsd: 0.5,
  unpriced: 'other',
  finalText: 'so far',
  blockedStops: 8,
}

const CALL: Whole<State['openCalls'][number]> = {
  toolUseId: 'a',
  name: 'Bash',
  input: { command: 'ls' },
  runId,
  isChanged: true,
  changedBy: 'hook',
  hook: { decision: 'allow', reason: 'why', context: 'more' },
  approvedDefinition: 'hash',
  clientResult: { output: [1], isError: true },
}

const AGENT: Whole<typeof NO_AGENT> = {
  run: RUN,
  openCalls: [
    CALL,
    { ...CALL, hook: { decision: 'ask' }, clientResult: 'timeout' },
    { ...CALL, hook: { decision: 'deny' } },
  ],
  request: {
    id: ID,
    openedAt: AT,
    isReleased: true,
    calls: [
      {
        toolUseId: 'a',
        name: 'Bash',
        input: { command: 'ls' },
        inputHash: 'hash',
        definitionHash: 'other',
        reason: 'changes files',
        rules: ['Bash(ls)'],
        decision: { behavior: 'allow', updated_input: { command: 'pwd' }, message: 'go' },
      },
    ],
  },
  holdsCalls: true,
  lastOutputs: { Finish: 'done' },
  granted: RULES,
  readThrough: 9,
  repeats: {
    calls: { recent: ['x'], times: 2 },
    unchanged: { recent: ['y'], times: 3 },
    failures: { times: 4, last: 'z', same: 5 },
    texts: 6,
    turn: { print: 7, ms: 8, results: ['r'], failed: true },
  },
  answered: { stopReason: 'finished', text: 'Done.' },
  forgotten: { seq: 10, throughSeq: 8 },
  contextTokens: 11,
}

const SUBAGENT: Whole<Subagent> = {
  toolUseId: 'task',
  callerId: 'caller',
  agentId: runId,
  name: 'helper',
  tools: ['Bash'],
  deny: ['Write'],
  model: 'small',
  mode: 'plan',
  isBackground: true,
  firstSeq: 2,
  agent: { ...AGENT, answered: { stopReason: 'completed', text: 'Yes.' } },
}

const TASK: Whole<State['tasks'][number]> = {
  id: ID,
  type: 'AgentRun',
  title: 'nightly',
  status: 'running',
  seq: 12,
  createdAt: AT,
  updatedAt: AT,
  runId,
  progress: { done: 1, total: 2 },
}

const WHOLE: Whole<State> = {
  ...AGENT,
  id: conversationId,
  status: 'running',
  reason: 'run',
  lastSeq: 20,
  createdAt: AT,
  updatedAt: AT,
  settings: { workdir: '/w', llm_config: { model: 'm' }, tools: ['Bash'], max_iteration_per_run: 5, archived: true },
  hooksAt: 13,
  subagents: [SUBAGENT],
  requests: [
    {
      kind: 'question',
      request_id: ID,
      tool_use_ids: ['a'],
      opened_at: AT,
      payload: { questions: [{ question: 'Which?', header: 'W', options: [], multi_select: false }] },
    },
  ],
  tasks: [TASK, { ...TASK, type: 'Command', status: 'pending' }, { ...TASK, type: 'Ticker' }],
  runRequestedAt: 14,
  subagentEndedAt: 15,
  lastRun: { id: runId, startSeq: 3, overrides: { model: 'n', permissionMode: 'plan', allowed: RULES } },
  runsInARow: 16,
  usage: { m: USAGE },
  costUsd: 0.75,
  postedKeys: [{ key: 'k', bodyHash: 'h', at: AT, answer: { event_id: ID, seq: 17, run_id: runId } }],
  messageIds: 'AAAAAAAAAAAAAAAA:17 ',
  preview: 'hello',
  previewSeq: 18,
  lastWords: 'Done.',
  rewound: [{ afterSeq: 4, beforeSeq: 6 }],
  version: 1,
}

test('every field of the state survives a restart, with each value that it can have', async () => {
  expect(await restarted(WHOLE)).toEqual(WHOLE)
  for (const each of Status.options) expect((await restarted({ ...WHOLE, status: each })).status).toBe(each)
  for (const mode of PermissionMode.options) {
    const overrides = { permissionMode: mode }
    const state = { ...WHOLE, subagents: [{ ...SUBAGENT, mode }], lastRun: { id: runId, startSeq: 3, overrides } }
    expect(await restarted(state)).toEqual(state)
  }
})

test('every field of the state that may be missing survives a restart without it', async () => {
  const { run, request, granted, answered, forgotten, contextTokens, lastRun, costUsd, ...needed } = WHOLE
  const without = { run, request, granted, answered, forgotten, contextTokens, lastRun, costUsd }
  const none = Object.fromEntries(Object.keys(without).map((name) => [name, undefined]))
  const { callerId: _, model: __, mode: ___, ...subagent } = SUBAGENT
  const bare = { ...needed, ...none, subagents: [{ ...subagent, agent: NO_AGENT }] } as unknown as State
  expect(await restarted(bare)).toEqual(bare)
})

test('a log of one or two events gets no snapshot, and one of unknown length counts as long', () => {
  expect([0, 1, 2, 3, 1000].map((lastSeq) => isShort(lastSeq))).toEqual([false, true, true, false, false])
})

describe('a conversation that is not open is read', () => {
  /** What was read, in a storage with this snapshot and a log of these events. */
  async function read(lastSeq: number, noted: State | undefined, log: readonly EventDraft[] | undefined) {
    const reads: string[] = []
    const events = (log ?? []).map((draft, at) => ({ event: stored(draft, at + 1) }))
    const storage = {
      snapshots: {
        read: async () => {
          reads.push('snapshot')
          return noted && { format: noted.version, ...noted }
        },
        write: async () => {},
      },
      view: async () => {
        reads.push('log')
        if (!log) throw new Error('there is no log')
        return {
          head: events.length,
          read: async ({ limit }: { limit: number }) => ({ events: events.slice(0, limit) }),
          [Symbol.asyncDispose]: async () => void reads.push('closed'),
        }
      },
    } as unknown as Parameters<typeof readAtRest>[0]
    return { state: await readAtRest(storage, conversationId, lastSeq), reads }
  }
  const log = [systemInit(), userMessage('hello')]

  test.each<[string, number, State | undefined, readonly EventDraft[] | undefined, string[], number | undefined]>([
    ['from a short log, whatever snapshot there is', 2, WHOLE, log, ['log', 'closed'], 2],
    ['from its snapshot, if its log is long', 20, WHOLE, log, ['snapshot'], 20],
    ['from its snapshot, if the length of its log is unknown', 0, WHOLE, log, ['snapshot'], 20],
    ['from its log, if that is short and nothing is noted', 0, undefined, log, ['snapshot', 'log', 'closed'], 2],
    [
      'not at all, if its log is long and nothing is noted',
      0,
      undefined,
      [...log, ...log],
      ['snapshot', 'log', 'closed'],
      undefined,
    ],
    ['not at all, if its log does not begin it', 1, WHOLE, [], ['log', 'closed'], undefined],
    ['not at all, if its log cannot be read', 1, WHOLE, undefined, ['log'], undefined],
  ])('%s', async (_what, lastSeq, noted, drafts, reads, seq) => {
    const found = await read(lastSeq, noted, drafts)
    expect([found.reads, found.state?.lastSeq]).toEqual([reads, seq])
  })
})

test.each<[string, object]>([
  ['of another conversation', { id: ID }],
  ['of a newer server', { format: EVENT_VERSION + 1, version: EVENT_VERSION + 1 }],
  ['of an older server that did not understand all it read', { format: 1, version: 2 }],
  ['with questions as an earlier version wrote them', { questions: [{}] }],
  ['with requests for a host as an earlier version wrote them', { networkRequests: [{}] }],
  ['that lacks a field', { status: undefined }],
])('a snapshot %s is not used', async (_what, fields) => {
  const noted = { format: WHOLE.version, ...WHOLE }
  const readAs = async (snapshot: object) =>
    await readSnapshot({ snapshots: { read: async () => snapshot, write: async () => {} } }, conversationId)
  expect(await readAs({ ...noted, ...fields })).toBeUndefined()
  expect(await readAs({ ...noted, questions: [], networkRequests: [] })).toEqual(WHOLE)
})

test('a snapshot says the version of the events that its server understood', async () => {
  const written: unknown[] = []
  const snapshots = {
    read: async () => undefined,
    write: async (_id: string, snapshot: object) => void written.push(snapshot),
  }
  for (const version of [1, EVENT_VERSION, EVENT_VERSION + 1]) await writeSnapshot({ snapshots }, { ...WHOLE, version })
  expect(written).toMatchObject([{ format: 1 }, { format: EVENT_VERSION }, { format: EVENT_VERSION }])
})
