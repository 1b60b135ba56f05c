/** The part of the state that belongs to subagents: who waits for whom, and what a start of a run changes. */
import { describe, expect, test } from 'vitest'
import type { OpenPermission } from '../../src/state/open-permission.ts'
import { EMPTY_STATE } from '../../src/state/state-shape.ts'
import type { State, Subagent } from '../../src/state/state-shape.ts'
import {
  areInBackground,
  canWorkInBackground,
  depthBelow,
  findSubagent,
  isBlocked,
  isDetached,
  openPermissions,
  releasedSubagents,
  rests,
  stateOf,
  unjudgedSubagents,
  withoutAnswered,
} from '../../src/state/subagents.ts'
import { agent } from './agent.ts'

const ALLOWED = { behavior: 'allow' } as OpenPermission['calls'][number]['decision']

const requestOf = (decision?: typeof ALLOWED): OpenPermission => ({
  id: 'request',
  openedAt: '2026-01-01T00:00:00.000Z',
  isReleased: false,
  calls: [{ toolUseId: 'call', name: 'Bash', input: {}, inputHash: 'hash', reason: 'it runs', decision }],
})

const within = (...subagents: Subagent[]): State => ({ ...EMPTY_STATE, subagents })
const waiting = { request: requestOf() }
const decided = { request: requestOf(ALLOWED) }

describe('a subagent is blocked', () => {
  test('while one of its calls is undecided, and not afterwards', () => {
    expect(isBlocked(within(), agent('a', {}, waiting))).toBe(true)
    expect(isBlocked(within(), agent('a', {}, decided))).toBe(false)
    expect(isBlocked(within(), agent('a'))).toBe(false)
  })

  test('while all its subagents in the foreground are, at any depth', () => {
    const [a, b, c] = [agent('a'), agent('b', { callerId: 'a' }, waiting), agent('c', { callerId: 'a' }, waiting)]
    expect(isBlocked(within(a, b, c), a)).toBe(true)
    expect(isBlocked(within(a, b, agent('c', { callerId: 'a' })), a)).toBe(false)
    const inside = agent('d', { callerId: 'b' }, waiting)
    expect(isBlocked(within(a, agent('b', { callerId: 'a' }), inside), a)).toBe(true)
    expect(isBlocked(within(a, agent('b', { callerId: 'a', isBackground: true }, waiting)), a)).toBe(false)
    expect(isBlocked(within(a, agent('b', { callerId: 'other' }, waiting)), a)).toBe(false)
  })
})

describe('a subagent rests', () => {
  test('while one of its calls waits, or one of a subagent that it waits for, also next to others that work', () => {
    const [a, b, c] = [agent('a'), agent('b', { callerId: 'a' }, waiting), agent('c', { callerId: 'a' })]
    expect([a, b, c].map((each) => rests(within(a, b, c), each))).toEqual([true, true, false])
    const behind = agent('b', { callerId: 'a', isBackground: true }, waiting)
    expect(rests(within(a, behind), a)).toBe(false)
  })

  test('with the answer of a client that it has not read', () => {
    const answered = { toolUseId: 'x', name: 'look_up', input: {}, runId: undefined, clientResult: 'timeout' as const }
    const each = agent('a', {}, { openCalls: [answered] })
    for (const status of ['paused', 'running', 'idle'] as const)
      expect(rests({ ...within(each), status }, each)).toBe(true)
  })

  test('after its calls were decided while paused, until the conversation runs again', () => {
    const each = agent('a', {}, decided)
    expect(rests({ ...within(each), status: 'paused' }, each)).toBe(true)
    expect(rests({ ...within(each), status: 'running' }, each)).toBe(false)
    const released = agent('a', {}, { request: { ...requestOf(ALLOWED), isReleased: true } })
    expect(rests({ ...within(released), status: 'paused' }, released)).toBe(false)
  })
})

describe('in the background', () => {
  test('work those that were started there, and those that can work are neither paused nor blocked', () => {
    const one = agent('a', { isBackground: true })
    expect(areInBackground(within(agent('a')))).toBe(false)
    expect(areInBackground(within(agent('b'), one))).toBe(true)
    expect(canWorkInBackground(within(one))).toBe(true)
    expect(canWorkInBackground({ ...within(one), status: 'paused' })).toBe(false)
    expect(canWorkInBackground(within(agent('a', { isBackground: true }, waiting)))).toBe(false)
    expect(canWorkInBackground(within(agent('a')))).toBe(false)
  })

  test('are also those that such a one has called', () => {
    const [a, b, c] = [agent('a', { isBackground: true }), agent('b', { callerId: 'a' }), agent('c', { callerId: 'b' })]
    for (const each of [a, b, c]) expect(isDetached(within(a, b, c), each), each.toolUseId).toBe(true)
    expect(isDetached(within(agent('a'), agent('b', { callerId: 'a' })), agent('b', { callerId: 'a' }))).toBe(false)
    expect(isDetached(within(), agent('b', { callerId: 'gone' }))).toBe(false)
  })
})

test('the depth below an agent counts its callers', () => {
  const state = within(agent('a'), agent('b', { callerId: 'a' }))
  expect(['a', 'b', undefined, 'gone'].map((id) => depthBelow(state, id))).toEqual([2, 3, 1, 1])
})

test('a request of any agent is open while one of its calls is undecided', () => {
  const request = requestOf()
  expect(
    openPermissions({ request, subagents: [agent('a', {}, waiting), agent('b', {}, decided), agent('c')] }),
  ).toEqual([request, waiting.request])
  expect(openPermissions({ request: requestOf(ALLOWED), subagents: [] })).toEqual([])
})

test('a run that begins again releases what was decided, and keeps the same list if nothing was asked', () => {
  const quiet = [agent('a')]
  expect(releasedSubagents(quiet)).toBe(quiet)
  const [released, other] = releasedSubagents([agent('a', {}, decided), agent('b')])
  expect(released?.agent.request?.isReleased).toBe(true)
  expect(other?.agent.request).toBeUndefined()
})

test('other hooks decide about open calls from now on, and nothing else of a subagent changes', () => {
  const call = { toolUseId: 'x', name: 'Bash', input: {}, runId: undefined, hook: { decision: 'allow' as const } }
  const [one] = unjudgedSubagents([agent('a', {}, { openCalls: [call], readThrough: 7 })])
  expect(one?.agent.openCalls).toEqual([{ ...call, hook: undefined }])
  expect(one?.agent.readThrough).toBe(7)
})

test('the result of its call removes a subagent, unless it works in the background', () => {
  const all = [agent('a'), agent('b', { isBackground: true })]
  expect(withoutAnswered(all, 'a').map(({ toolUseId }) => toolUseId)).toEqual(['b'])
  expect(withoutAnswered(all, 'b')).toBe(all)
  expect(withoutAnswered(all, 'gone')).toBe(all)
})

test('the state of a subagent has its own part, its tools and its mode, except where somebody else is asked', () => {
  const { settings } = EMPTY_STATE
  const one = agent('a', { mode: 'plan' }, { readThrough: 7 })
  const main = { ...within(one), readThrough: 3 }
  expect(findSubagent(main, 'a')).toBe(one)
  expect(stateOf(main, one)).toMatchObject({ readThrough: 7, settings: { tools: ['Bash'], permission_mode: 'plan' } })
  const asking = { ...main, settings: { ...settings, permission_mode: 'callback' as const } }
  expect(stateOf(asking, one).settings.permission_mode).toBe('callback')
  expect(stateOf(main, agent('a')).settings).not.toHaveProperty('permission_mode')
})
