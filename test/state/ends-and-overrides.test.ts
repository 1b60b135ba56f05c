/** What one run or one decision has given ends when it must: rules of what fold and intents keep, and for how long. */
import { describe, expect, test } from 'vitest'
import type { Status } from '../../src/contract/events/status.ts'
import { afterMessage, overridesIn, stricterOf } from '../../src/state/run-overrides.ts'
import { EMPTY_STATE } from '../../src/state/state.ts'
import type { State } from '../../src/state/state.ts'
import { decideRewind } from '../../src/state/rewind-intent.ts'
import { decideWithdraw } from '../../src/state/withdraw-intent.ts'
import {
  asked,
  conversationId,
  decided,
  folded,
  runId,
  settings,
  status,
  stored,
  toolUse,
  userMessage,
} from '../conversations/events.ts'

const OVERRIDDEN = { ...status('running'), model: 'small', permission_mode: 'plan' as const }
const RIGHTS = { allow: ['Bash(ls)'], ask: [], deny: [] }
const changed = (changes: Record<string, unknown>) => ({ type: 'ConfigUpdate', source: 'user', changes }) as const

test.each([
  [{ title: 'new' }, { model: 'small', permissionMode: 'plan' }],
  [{ permission_mode: 'default' }, { model: 'small' }],
  [{ llm_config: { model: 'large' } }, { permissionMode: 'plan' }],
])('the change %j of the settings leaves the running run %j', (changes, left) => {
  const { overrides } = folded([OVERRIDDEN, changed(changes)]).lastRun!
  expect(Object.fromEntries(Object.entries(overrides!).filter(([, value]) => value !== undefined))).toEqual(left)
})

test('a fork has nothing of what the last run of its original may do', () => {
  const forked = {
    type: 'ForkedFrom',
    source: 'environment',
    from_conversation_id: conversationId,
    from_seq: 1,
  } as const
  const places = { from_cwd: '/work', cwd: '/copy', files: { from: 'now' }, options_summary: settings } as const
  const { lastRun } = folded([OVERRIDDEN, status('paused', 'running'), { ...forked, ...places }])
  expect(lastRun).toEqual({ id: runId, startSeq: expect.any(Number) })
})

test('what a slash command allows holds until the run ends, also while it waits', () => {
  const command = {
    name: 'release',
    body: 'Release it.',
    path: '/r.md',
    source: 'project',
    allowed_tools: ['Bash(npm:*)'],
  }
  const project_settings = { commands: [command], skills: [], permission_rules: { allow: [], ask: [], deny: [] } }
  const from = { ...EMPTY_STATE, id: conversationId, settings: { ...settings, project_settings } } as unknown as State
  const posted = { ...userMessage('/release', true), slash_command: { name: 'release', arguments: '' } }
  const granted = folded([posted as never, status('running')], from)
  expect(granted.granted).toBeDefined()
  expect(folded([status('waiting_for_confirmation', 'running'), status('running')], granted).granted).toBeDefined()
  for (const end of ['idle', 'paused', 'error'] as const)
    expect(folded([status(end, 'running')], granted).granted, end).toBeUndefined()
})

test('an allowed call runs with the definition of its tool that the user was asked about', () => {
  const opened = asked(['a', 'b'])
  const tool_uses = opened.payload.tool_uses.map((each, at) => ({
    ...each,
    ...(at === 0 && { definition_hash: 'd'.repeat(64) }),
  }))
  const waiting = [status('running'), toolUse('a'), toolUse('b'), { ...opened, payload: { tool_uses } }]
  const { openCalls } = folded([...waiting, decided('a'), decided('b')])
  expect(openCalls.map(({ toolUseId, approvedDefinition }) => [toolUseId, approvedDefinition])).toEqual([
    ['a', 'd'.repeat(64)],
    ['b', undefined],
  ])
})

test('the result of a call that a rewind ends says why, and so does what was asked about it', () => {
  const waiting = folded([status('running'), toolUse('a'), asked(['a']), status('waiting_for_confirmation', 'running')])
  const target = { lastOutputs: {}, forgotten: undefined, contextTokens: undefined }
  const closed = { requests: [], tasks: [], subagents: [] }
  const drafts = decideRewind(waiting, { kind: 'rewind', toSeq: 0, target, closed, processesLeft: 0 })
  expect(drafts).toMatchObject([
    { type: 'RequestClosed', reason: 'rewound' },
    {
      type: 'ToolResult',
      tool_use_id: 'a',
      error_message: expect.stringContaining('taken back to an event before this call'),
    },
    { type: 'Rewound' },
    { type: 'StatusUpdate', status: 'idle' },
  ])
})

test('a run that waits for one after the other keeps its time, in which the waits do not count', () => {
  const waits = [status('waiting_for_confirmation', 'running'), status('waiting_for_input', 'waiting_for_confirmation')]
  expect(folded([status('running'), ...waits]).run).toMatchObject({ id: runId, activeMs: 1000 })
})

describe('a message that is withdrawn', () => {
  const running = folded([userMessage('hello', true), status('running')])
  const intent = { kind: 'withdraw', message: { seq: 1 }, sentThrough: 0, runRequestedAt: 0, now: 0 } as const
  const typesAfter = (state: State, more: object = {}) => {
    const drafts = decideWithdraw(state, { ...intent, ...more })
    return Array.isArray(drafts) ? drafts.map(({ type }) => type) : drafts
  }

  test('ends the run that began for it and has nothing else to do', () => {
    expect(typesAfter(running)).toEqual(['MessageWithdrawn', 'Result', 'StatusUpdate'])
  })

  test.each<readonly [string, Partial<State>, object]>([
    ['another message asks for a run', {}, { runRequestedAt: 2 }],
    ['a newer message asked for it', { runRequestedAt: 2 }, {}],
    ['a subagent has ended, which the agent has not read', { subagentEndedAt: 2 }, {}],
    ['a call has no result', { openCalls: [{ toolUseId: 'a', name: 'Bash', input: {}, runId }] }, {}],
    ['the agent does not run', { status: 'paused' }, {}],
    ['the model has answered', { run: { ...running.run!, steps: 1 } }, {}],
    ['the run is older', { run: { ...running.run!, startSeq: 0 } }, {}],
  ])('leaves the run alone if %s', (_, state, more) => {
    expect(typesAfter({ ...running, ...state }, more)).toEqual(['MessageWithdrawn'])
  })
})

test('of two modes the stricter one is the one that allows less', () => {
  const modes = ['plan', 'deny', 'callback', 'default', 'accept_edits', 'bypass'] as const
  for (const [at, one] of modes.entries())
    for (const other of modes.slice(at)) expect([stricterOf(one, other), stricterOf(other, one)]).toEqual([one, one])
})

test.each<[object, object | undefined]>([
  [{}, undefined],
  [{ model: 'm' }, { model: 'm' }],
  [{ permission_mode: 'plan' }, { permissionMode: 'plan' }],
  [{ allowed_tools: ['Bash(ls)'] }, { allowed: { allow: ['Bash(ls)'], ask: [], deny: [] } }],
  [{ instructions: 'Be brief.' }, { instructions: 'Be brief.' }],
  [{ temperature: 0 }, { sampling: { temperature: 0 } }],
  [{ max_output_tokens: 5 }, { sampling: { max_output_tokens: 5 } }],
  [{ reasoning_effort: 'low' }, { sampling: { reasoning_effort: 'low' } }],
  [
    { model: 'm', temperature: 1, max_output_tokens: 5, reasoning_effort: 'low' },
    { model: 'm', sampling: { temperature: 1, max_output_tokens: 5, reasoning_effort: 'low' } },
  ],
])('a run whose first event says %j has %j instead of the settings', (fields, overrides) => {
  const read = overridesIn(stored({ ...status('running'), ...fields }, 1) as Parameters<typeof overridesIn>[0])
  expect(read).toEqual(overrides ? { overrides } : {})
  if (overrides) expect(folded([{ ...status('running'), ...fields }]).lastRun?.overrides).toEqual(overrides)
})

test.each<[Status, object]>([
  ['idle', { model: 'm', instructions: 'i', permissionMode: 'plan' }],
  ['paused', { model: 'm', instructions: 'i', permissionMode: 'plan' }],
  ['waiting_for_input', { model: 'm', instructions: 'i', permissionMode: 'plan' }],
  ['running', { model: 'm', instructions: 'i', permissionMode: 'plan', allowed: RIGHTS }],
  ['waiting_for_client', { model: 'm', instructions: 'i', permissionMode: 'plan', allowed: RIGHTS }],
])('after a message to a conversation that is %s, what is left of a run is %j', (is, left) => {
  const overrides = { model: 'm', instructions: 'i', permissionMode: 'plan', allowed: RIGHTS } as const
  const lastRun = { id: runId, startSeq: 1, overrides }
  expect(afterMessage({ ...folded([]), status: is, lastRun })?.overrides).toEqual(left)
})

test('a mode that allows more than that of the conversation restricts nothing', () => {
  const lastRun = { id: runId, startSeq: 1, overrides: { permissionMode: 'bypass' } } as const
  const state = { ...folded([]), settings: { ...settings, permission_mode: 'default' } as const, lastRun }
  expect(afterMessage(state)?.overrides).toEqual({})
  const equal = { ...lastRun, overrides: { permissionMode: 'default' } } as const
  expect(afterMessage({ ...state, lastRun: equal })?.overrides).toEqual({ permissionMode: 'default' })
  expect(afterMessage({ ...state, lastRun: undefined })).toBeUndefined()
})
