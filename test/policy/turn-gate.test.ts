import { expect, test } from 'vitest'
import type { GateRules, HookVerdict, GatedCall } from '../../src/policy/rules/gate-rules.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { TurnGate } from '../../src/policy/turn-gate.ts'
import { keepBusy } from '../support/take-time.ts'

const CONFIRM: GateRules = { mode: 'bypass', confirmation: true, rules: ruleSetOf(undefined) }
const FREE: GateRules = { ...CONFIRM, confirmation: false }
const { signal } = new AbortController()

const call = (at: number, more: Partial<GatedCall> = {}): GatedCall => {
  return { toolUseId: `call-${at}`, name: 'Act', input: { at }, approved: true, ...more }
}
const callsOf = (count: number, more: Partial<GatedCall> = {}) =>
  Array.from({ length: count }, (_, at) => call(at, more))

/** `decisions`: how often it was decided what a call would do. `during` is called meanwhile. */
function setGate(during: (id: number) => void = () => {}) {
  const counted = { decisions: 0 }
  const accessOf = ({ input }: Pick<GatedCall, 'input'>) => {
    counted.decisions += 1
    during((input as { at: number }).at)
    return { kind: 'other' as const }
  }
  const turn = new TurnGate(new PermissionGate({ workdir: () => '/work', homes: [], accessOf }))
  const begin = async (calls: readonly GatedCall[], rules: readonly GateRules[], id = calls[0]!.toolUseId) => {
    await turn.decide({ calls, rules }, new Set([id]), signal)
    return turn.gated({ calls, rules }, [id])
  }
  return { turn, begin, counted }
}

/** A whole turn: each call begins and leaves the open ones. */
async function decisionsOf(count: number): Promise<number> {
  const { begin, counted } = setGate()
  for (let open = callsOf(count); open.length > 0; open = open.slice(1))
    expect(await begin(open, [CONFIRM])).toEqual({ permissionCalls: [], denials: new Map() })
  return counted.decisions
}

test('each call of a turn is decided when the turn begins and when it begins itself: twice as many calls, twice as many decisions', async () => {
  expect([await decisionsOf(1), await decisionsOf(50), await decisionsOf(100)]).toEqual([1, 99, 199])
})

test('nothing is decided again because of a call that needs a decision', async () => {
  const { begin, counted } = setGate()
  const calls = callsOf(5, { approved: false })
  expect((await begin(calls, [CONFIRM]))?.permissionCalls.map((asked) => asked.tool_use_id)).toEqual(
    calls.map((each) => each.toolUseId),
  )
  await begin([call(0), ...calls.slice(1)], [CONFIRM])
  expect(counted.decisions).toBe(6)
})

test('nothing is looked into where every call may run', async () => {
  const { begin, counted } = setGate()
  expect(await begin(callsOf(100), [FREE])).toEqual({ permissionCalls: [], denials: new Map() })
  expect(counted.decisions).toBe(0)
})

test('other work gets a turn of the event loop while long decisions are made', async () => {
  let turns = 0
  let left = true
  const count = () => {
    turns += 1
    if (left) setImmediate(count)
  }
  setImmediate(count)
  // Longer than a slice: the processor time of a decision that takes as long as it may.
  const { begin } = setGate(() => keepBusy(25))
  await begin(callsOf(10), [CONFIRM])
  left = false
  expect(turns).toBeGreaterThanOrEqual(9)
})

test('a change that comes while calls are decided, or after that, holds for all of them', async () => {
  const rules = { current: CONFIRM }
  const { turn, begin } = setGate()
  const calls = callsOf(3)
  await turn.decide({ calls, rules: [rules.current] }, new Set(['call-0']), signal)
  rules.current = { ...CONFIRM, rules: ruleSetOf({ allow: [], ask: [], deny: ['Act'] }) }
  expect(turn.gated({ calls, rules: [rules.current] }, ['call-0'])).toBeUndefined()
  expect((await begin(calls, [rules.current]))?.denials.size).toBe(3)
  // The same rules as other objects, as those of subagents are.
  const again = { ...rules.current, rules: { ...rules.current.rules, deny: [...rules.current.rules.deny] } }
  expect(turn.gated({ calls, rules: [again] }, ['call-0'])?.denials.size).toBe(3)
  const hook: HookVerdict = { decision: 'ask' }
  for (const changed of [call(1, { input: { at: 9 } }), call(1, { hook }), call(1, { approved: false }), call(7)])
    expect(turn.gated({ calls: [call(0), changed], rules: [again] }, ['call-0'])).toBeUndefined()
  expect(turn.gated({ calls, rules: [again, CONFIRM] }, ['call-0'])).toBeUndefined()
})

test('a call begins only after it was decided last', async () => {
  const { turn, begin } = setGate()
  const calls = callsOf(2)
  await begin(calls, [CONFIRM])
  expect(turn.gated({ calls, rules: [CONFIRM] }, ['call-1'])).toBeUndefined()
  expect(await begin(calls, [CONFIRM], 'call-1')).toBeDefined()
})

test('a paused run decides nothing more', async () => {
  const abort = new AbortController()
  const { turn, counted } = setGate((at) => at === 3 && abort.abort())
  const calls = callsOf(10)
  await turn.decide({ calls, rules: [CONFIRM] }, new Set(), abort.signal)
  expect(counted.decisions).toBe(4)
  expect(turn.gated({ calls, rules: [CONFIRM] }, [])).toBeUndefined()
})

test.each([{ mode: 'plan' }, { hasApprover: true }, { isStrangers: true }] as const)(
  'a decision holds for the same rules only: %j',
  async (change) => {
    const { turn, begin } = setGate()
    const calls = callsOf(2)
    await begin(calls, [CONFIRM])
    expect(turn.gated({ calls, rules: [{ ...CONFIRM }] }, ['call-0'])).toBeDefined()
    expect(turn.gated({ calls, rules: [{ ...CONFIRM, ...change }] }, ['call-0'])).toBeUndefined()
  },
)
