/** What the events say when work is ended from outside: by a hand-over, a rewind, a refusal, or a client that stops it. */
import { describe, expect, test } from 'vitest'
import { stoppedByClient } from '../../src/state/drafts.ts'
import { decideHandOver } from '../../src/state/hand-over.ts'
import { decideReject } from '../../src/state/reject-intent.ts'
import { decideRecover } from '../../src/state/run-end.ts'
import { closedByRewind, decideRewind } from '../../src/state/rewind-intent.ts'
import { NO_AGENT } from '../../src/state/state-shape.ts'
import type { State, Subagent } from '../../src/state/state-shape.ts'
import { decideEndBackground } from '../../src/state/subagent-intents.ts'
import { agent } from './agent.ts'
import { asked, folded, runId, status, toolUse } from '../conversations/events.ts'

const working = folded([status('running'), toolUse('a')])
const call = (toolUseId: string) => ({ toolUseId, name: 'Bash', input: {}, runId })

const withSubagents = (state: State, ...subagents: Subagent[]): State => ({ ...state, subagents })

describe('a hand-over', () => {
  const nothing = { sessions: [], commandLines: [] }

  test('says of a call that has begun that nobody knows what it did, and leaves the others', () => {
    const drafts = decideHandOver(working, { kind: 'hand_over', begun: ['a'], running: nothing })
    expect(drafts).toMatchObject([
      { type: 'ToolResult', tool_use_id: 'a', error_message: expect.stringContaining('not known what it did') },
    ])
    expect(decideHandOver(working, { kind: 'hand_over', begun: ['other'], running: nothing })).toEqual([])
  })

  test('names at most 20 of the processes that end, each with at most 200 characters, and counts all', () => {
    const commandLines = Array.from({ length: 21 }, (_, at) => `${at} ${'x'.repeat(300)}`)
    const [ended] = decideHandOver(working, {
      kind: 'hand_over',
      begun: [],
      running: { sessions: ['main'], commandLines },
    })
    expect(ended).toStrictEqual({
      type: 'ProcessesEnded',
      source: 'environment',
      reason: 'interrupted',
      sessions: ['main'],
      processes: 21,
      command_lines: commandLines.slice(0, 20).map((line) => line.slice(0, 200)),
    })
  })
})

describe('a rewind', () => {
  test('ends all subagents, by their ids', () => {
    const state = withSubagents(working, agent('x', { isBackground: true }), agent('y'))
    expect(closedByRewind(state, 0).subagents).toEqual(['agent of x', 'agent of y'])
  })

  test('restores which part of the history a summary stands for', () => {
    const forgotten = { seq: 4, throughSeq: 3, summary: 'short' }
    const target = { lastOutputs: {}, forgotten, contextTokens: 17 }
    const closed = { requests: [], tasks: [], subagents: [] }
    const drafts = decideRewind(working, { kind: 'rewind', toSeq: 5, target, closed, processesLeft: 0 })
    expect(drafts.find(({ type }) => type === 'Rewound')).toMatchObject({
      restored: { forgotten: { seq: 4, through_seq: 3 }, context_tokens: 17 },
    })
  })
})

describe('the event of a conversation that went back says', () => {
  const closed = { requests: ['r'], tasks: ['t'], subagents: ['s'] }
  const empty = { lastOutputs: {}, forgotten: undefined, contextTokens: undefined }
  const idempotency = { key: 'k', bodyHash: 'h', formerHashes: ['g'] }
  const idle = folded([status('running'), status('idle', 'running')])
  const rewind = (more: object) =>
    decideRewind(idle, { kind: 'rewind', toSeq: 5, target: empty, closed, processesLeft: 2, ...more })
  const rewound = { type: 'Rewound', source: 'user', to_seq: 5, closed, processes_left: 2, restored: {} }
  const written = { snapshot_id: 'i', changed: 1, removed: 2, failed: 3 }
  const restore = (more: object) => decideRewind(idle, { kind: 'files_restored', toSeq: 5, restored: written, ...more })
  const restored = { type: 'FilesRestored', source: 'user', to_seq: 5, ...written }

  test.each([
    ['no more than there is', {}, {}],
    ['who did it', { by: 'ada' }, { by: 'ada' }],
    ['the key of the request', { idempotency }, { idempotency_key: 'k', body_hash: 'h' }],
  ])('%s', (_what, more, expected) => {
    expect(rewind(more)).toStrictEqual([{ ...rewound, ...expected }])
    expect(restore(more)).toStrictEqual([{ ...restored, ...expected }])
  })

  test.each([
    ['the task list of then', { lastOutputs: { TaskTracker: [] } }, { last_outputs: { TaskTracker: [] } }],
    [
      'the compaction that holds again',
      { forgotten: { seq: 4, throughSeq: 3 } },
      { forgotten: { seq: 4, through_seq: 3 } },
    ],
    ['the size of the context', { contextTokens: 0 }, { context_tokens: 0 }],
  ])('%s', (_what, target, expected) => {
    expect(rewind({ target: { ...empty, ...target } })).toStrictEqual([{ ...rewound, restored: expected }])
  })

  test('before that, how what worked and waited has ended, and then that the conversation is idle', () => {
    const waiting = folded([status('running'), toolUse('a'), asked(['a'])])
    const state = { ...withSubagents(waiting, agent('x', { isBackground: true })), status: 'paused' as const }
    const drafts = decideRewind(state, { kind: 'rewind', toSeq: 5, target: empty, closed, processesLeft: 2 })
    expect(drafts.map(({ type }) => type)).toEqual(['RequestClosed', 'ToolResult', 'Result', 'Rewound', 'StatusUpdate'])
    expect(drafts).toMatchObject([
      { reason: 'rewound' },
      { tool_use_id: 'a', error_type: 'interrupted' },
      { stop_reason: 'cancelled' },
      rewound,
      { status: 'idle', reason: 'rewound' },
    ])
  })
})

test('a refusal ends only the subagent that asks, in the name of the one that called it and works on', () => {
  const { request } = folded([status('running'), toolUse('d'), asked(['d'])])
  const caller = agent('b', { agent: { ...NO_AGENT, openCalls: [call('c'), call('e')] } })
  const asking = agent('c', { callerId: 'b', agent: { ...NO_AGENT, openCalls: [call('d')], request } })
  const state = withSubagents({ ...working, openCalls: [call('b')] }, caller, asking, agent('e', { callerId: 'b' }))
  const drafts = decideReject(state, { kind: 'reject', reason: 'No.', newRunId: runId, now: 0 })
  const results = Array.isArray(drafts) ? drafts.filter((draft) => draft.type === 'ToolResult') : []
  expect(results.map((result) => [result.tool_use_id, result.parent_tool_use_id])).toEqual([
    ['d', 'c'],
    ['c', 'b'],
  ])
})

test.each([
  ['server_restart', 'paused'],
  ['log_failed', 'error'],
] as const)('a run that is cut off because of %s answers each of its calls once, and is %s', (why, to) => {
  const state = folded([toolUse('b')], working)
  const drafts = decideRecover(state, { kind: 'recover', why, newRunId: runId, now: 0 })
  expect(drafts.flatMap((draft) => (draft.type === 'ToolResult' ? draft.tool_use_id : []))).toEqual(['a', 'b'])
  expect(drafts.at(-1)).toMatchObject({ type: 'StatusUpdate', status: to })
})

test('a subagent that a client stops is cancelled, and what it waited for is interrupted', () => {
  const request = folded([status('running'), toolUse('d'), asked(['d'])]).request
  const waiting = agent('x', { isBackground: true, agent: { ...NO_AGENT, openCalls: [call('d')], request } })
  const drafts = stoppedByClient(withSubagents(working, waiting), 'x')
  expect(drafts.find(({ type }) => type === 'RequestClosed')).toMatchObject({ reason: 'interrupted' })
  expect(drafts.find(({ type }) => type === 'Result')).toMatchObject({ stop_reason: 'cancelled' })
  expect(stoppedByClient(withSubagents(working, agent('x')), 'x')).toEqual([])
})

test('the end of a subagent in the background starts a run that reads it, unless a hook has ended it', () => {
  const idle = withSubagents(folded([status('running'), status('idle', 'running')]), agent('x', { isBackground: true }))
  const end = (stop_reason: 'completed' | 'hook') =>
    decideEndBackground(idle, {
      kind: 'end_background',
      toolUseId: 'x',
      events: [{ type: 'Result', source: 'agent', stop_reason, background_agent_id: 'agent of x' } as never],
      newRunId: runId,
    }).map(({ type }) => type)
  expect(end('completed')).toEqual(['Result', 'StatusUpdate'])
  expect(end('hook')).toEqual(['Result'])
})
