/** When a subagent begins, what its end starts, and the rules that its calls need. */
import { describe, expect, test } from 'vitest'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import { NO_AGENT } from '../../src/state/state-shape.ts'
import type { State } from '../../src/state/state.ts'
import { decideEndBackground, decideStartSubagent, MAX_OPEN } from '../../src/state/subagent-intents.ts'
import { rulesOfAgent } from '../../src/state/subagent-rules.ts'
import { agent } from './agent.ts'
import { folded, runId, settings, status, toolUse } from '../conversations/events.ts'

/** Runs that follow each other without a user. */
const MAX_IN_A_ROW = 20

const call = (toolUseId: string) => ({ toolUseId, name: 'Task', input: {}, runId })
const working = folded([status('running'), toolUse('a')])

describe('a subagent begins', () => {
  const subagent = {
    parent_tool_use_id: 'a',
    agent_name: 'helper',
    agent_id: 'new agent',
    description: 'Look',
    prompt: 'Look for it.',
    system_prompt: '',
    tools: [],
    background: false,
  }
  const start = (state: State, more: object = {}) =>
    decideStartSubagent(state, { kind: 'start_subagent', subagent: { ...subagent, ...more } })
  const others = (count: number) => Array.from({ length: count }, (_, at) => agent(`other ${at}`))

  test('for an open call of the main agent, or of a subagent', () => {
    expect(start(working)).toStrictEqual([{ type: 'SubagentStart', source: 'environment', run_id: runId, ...subagent }])
    const caller = agent('b', { agent: { ...NO_AGENT, openCalls: [call('c')] } })
    expect(start({ ...working, subagents: [caller] }, { parent_tool_use_id: 'c' })).toHaveLength(1)
    expect(start({ ...working, run: undefined })[0]).not.toHaveProperty('run_id')
  })

  test.each<[string, State, object?]>([
    ['if its call has its result', working, { parent_tool_use_id: 'z' }],
    ['if it works already', { ...working, subagents: [agent('b', { agentId: 'new agent' })] }],
    ['if another one works for its call', { ...working, subagents: [agent('a')] }],
    ['if too many are open', { ...working, subagents: others(MAX_OPEN) }],
  ])('not, %s', (_what, state, more) => {
    expect(start(state, more)).toEqual([])
    expect(start({ ...working, subagents: others(MAX_OPEN - 1) })).toHaveLength(1)
  })

  test.each<[PermissionMode | undefined, PermissionMode | undefined, boolean, PermissionMode | undefined]>([
    ['plan', undefined, true, 'plan'],
    ['plan', 'bypass', true, 'plan'],
    ['default', 'plan', true, 'plan'],
    ['plan', undefined, false, undefined],
    ['plan', 'bypass', false, 'bypass'],
    [undefined, 'bypass', true, 'bypass'],
  ])('in a run with the mode %s, itself with %s, in the background %j: with %s', (ofRun, own, background, mode) => {
    const lastRun = { id: runId, startSeq: 1, ...(ofRun && { overrides: { permissionMode: ofRun } }) }
    const [draft] = start({ ...working, lastRun }, { background, ...(own && { permission_mode: own }) })
    expect(draft).toMatchObject({ background })
    expect(draft).toEqual(
      mode
        ? expect.objectContaining({ permission_mode: mode })
        : expect.not.objectContaining({ permission_mode: expect.anything() }),
    )
  })
})

describe('the end of a subagent in the background', () => {
  const result = { type: 'Result', source: 'environment', background_agent_id: 'agent of x' } as never
  const other = { type: 'ErrorEvent', source: 'environment' } as never
  const idle = {
    ...folded([status('running'), status('idle', 'running')]),
    subagents: [agent('x', { isBackground: true })],
  }
  const end = (state: State, ...events: never[]) =>
    decideEndBackground(state, { kind: 'end_background', toolUseId: 'x', events, newRunId: 'new run' })

  test('starts a run that reads it, if none is active', () => {
    expect(end(idle, other, result)).toMatchObject([
      other,
      result,
      { type: 'StatusUpdate', status: 'running', run_id: 'new run', reason: 'subagent' },
    ])
  })

  test('is read by the run that is active', () => {
    for (const each of ['running', 'waiting_for_input', 'paused', 'error', 'cancelled'] as const)
      expect(end({ ...idle, status: each }, other, result)).toEqual([other, result])
    expect(end({ ...idle, status: 'finished' }, result)).toHaveLength(2)
  })

  test('waits for a user after too many runs in a row', () => {
    expect(end({ ...idle, runsInARow: MAX_IN_A_ROW }, result)).toHaveLength(2)
    const waiting = end({ ...idle, runsInARow: MAX_IN_A_ROW + 1 }, other, result)
    expect(waiting).toEqual([other, { ...(result as object), waits_for_user: true }])
  })

  test('is nothing if the subagent has ended before', () => {
    expect(end({ ...idle, subagents: [] }, result)).toEqual([])
  })
})

describe('the calls of an agent need', () => {
  const state: State = {
    ...working,
    settings: {
      ...settings,
      permission_mode: 'default',
      permission_rules: { allow: ['Read'], ask: ['Edit'], deny: ['Bash(rm:*)'] },
    },
  }
  const modes = (toolUseId: string | undefined, ...subagents: State['subagents']) =>
    rulesOfAgent({ ...state, subagents }, toolUseId).map(({ mode, rules }) => [mode, rules.deny.length])

  test('the rules of the conversation', () => {
    expect(modes(undefined)).toEqual([['default', 1]])
    expect(modes('x', agent('x'))).toEqual([['default', 1]])
    expect(modes('unknown', agent('x', { mode: 'plan' }))).toEqual([['default', 1]])
  })

  test('the rules of each subagent on the way that has its own, too', () => {
    const [outer, inner] = [agent('x', { mode: 'plan' }), agent('y', { callerId: 'x', deny: ['Read', 'WebFetch'] })]
    expect(modes('x', outer, inner)).toEqual([
      ['default', 1],
      ['plan', 1],
    ])
    expect(modes('y', outer, inner)).toEqual([
      ['default', 1],
      ['default', 3],
      ['plan', 1],
    ])
    expect(modes('y', { ...outer, mode: undefined }, inner)).toEqual([
      ['default', 1],
      ['default', 3],
    ])
  })
})
