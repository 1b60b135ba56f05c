import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { PermissionRules } from '../../src/contract/values/permission.ts'
import type { GatedCall, GateRules } from '../../src/policy/rules/gate-rules.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { hashInput } from '../../src/policy/rules/input-hash.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'

const call = (toolUseId: string, more: Partial<GatedCall> = {}): GatedCall => {
  return { toolUseId, name: 'Act', input: { command: 'ls' }, approved: false, ...more }
}
const gate = new PermissionGate({
  workdir: () => '/work',
  homes: [],
  accessOf: ({ name }) => ({ kind: name === 'Think' ? 'none' : 'other' }),
})
const CONFIRM: GateRules = { mode: 'bypass', confirmation: true, rules: ruleSetOf(undefined) }

describe('the gate', () => {
  test('asks about nothing without a mode or a rule that says so', () => {
    expect(gate.judge(call('a'), [{ ...CONFIRM, confirmation: false }])).toEqual({ behavior: 'allow' })
  })

  test('with confirmation asks about each call that is neither approved nor harmless, in order, and shows it', () => {
    const calls = [call('a'), call('b', { approved: true }), call('c', { name: 'Think' }), call('d')]
    const asks = calls
      .map((each) => gate.judge(each, [CONFIRM]))
      .flatMap((verdict) => ('ask' in verdict ? [verdict.ask] : []))
    expect(asks.map((asked) => asked.tool_use_id)).toEqual(['a', 'd'])
    expect(asks[0]).toEqual({
      tool_use_id: 'a',
      name: 'Act',
      input: { command: 'ls' },
      input_hash: hashInput('Act', { command: 'ls' }),
      reason: 'confirmation_mode is on',
    })
  })
})

describe('of several rules', () => {
  const withRules = (lists: Partial<PermissionRules>): GateRules => {
    return { mode: 'bypass', confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny: [], ...lists }) }
  }
  const [free, asking, denying] = [withRules({}), withRules({ ask: ['Act'] }), withRules({ deny: ['Act'] })]

  test.each([
    ['a denial counts before a question', [asking, denying, asking]],
    ['a denial counts wherever it is', [denying, free, asking]],
  ])('%s', (_, rules) => {
    expect(gate.judge(call('a'), rules)).toEqual({ behavior: 'deny', reason: 'The rule Act denies it.' })
  })

  test('a question counts before what may run, and the last one is asked', () => {
    const verdict = gate.judge(call('a'), [CONFIRM, asking, free])
    expect(verdict).toMatchObject({ behavior: 'ask', ask: { reason: 'the rule Act asks about it' } })
  })

  test('it may run if each of them lets it, also past a hook that allows', () => {
    const allow = { behavior: 'allow' }
    expect(gate.judge(call('a'), [free, withRules({ allow: ['Act'] })])).toEqual(allow)
    expect(gate.judge(call('a', { hook: { decision: 'allow' } }), [free])).toEqual(allow)
    expect(gate.judge(call('a', { hook: { decision: 'deny' } }), [free])).toEqual({
      behavior: 'deny',
      reason: 'A hook denied it.',
    })
  })
})

test('a command that is decided before its parser is there is a question', () => {
  const early = new PermissionGate({ workdir: () => '/work', homes: [], accessOf: () => ({ kind: 'none' }) })
  const access = { kind: 'command', command: 'ls', cwd: '/work' } as const
  expect(early.verdictOn('Bash', access, { ...CONFIRM, mode: 'default', confirmation: false }, false)).toEqual({
    behavior: 'ask',
    reason: 'it cannot be decided by rules: the parser of command lines is not loaded yet',
  })
})

test('a command is judged by where the shell stands now, whatever was judged before', async () => {
  const judging = new PermissionGate({ workdir: () => '/work', homes: [], accessOf: () => ({ kind: 'none' }) })
  const ruleSet = ruleSetOf({ allow: ['Bash(read *)'], ask: [], deny: [] })
  const rules: GateRules = { mode: 'default', confirmation: false, rules: ruleSet }
  await judging.prepare(rules)
  const verdictOn = (command: string, cwd: string | undefined, evaluates?: readonly string[]) => {
    const place = { cwd, path: '/usr/bin:/bin', ...(evaluates && { evaluates }) }
    return judging.verdictOn('Bash', { kind: 'command', command, ...place }, rules, false).behavior
  }
  const inside = 'cat a'
  expect(verdictOn(inside, '/work')).toBe('allow')
  expect(verdictOn(inside, '/elsewhere')).toBe('ask')
  expect(verdictOn(inside, undefined)).toBe('ask')
  expect(verdictOn(inside, '/work')).toBe('allow')
  expect(verdictOn('read a', '/work')).toBe('allow')
  expect(verdictOn('read a', '/work', ['a'])).toBe('ask')
  expect(verdictOn('read a', '/work', [])).toBe('allow')
})

test('what is asked about shows the rules that would allow it, and the definition of a tool that may change', () => {
  const options = { workdir: () => '/work', homes: [], accessOf: () => ({ kind: 'other' }) as const }
  const rules = [{ ...CONFIRM, mode: 'default', confirmation: false } as const]
  const changing = new PermissionGate({ ...options, definitionOf: (name) => `of ${name}` })
  expect(changing.judge(call('a'), rules)).toMatchObject({ ask: { rules: ['Act'], definition_hash: 'of Act' } })
  expect(new PermissionGate(options).judge(call('a'), rules)).not.toHaveProperty('ask.definition_hash')
  expect(new PermissionGate(options).judge(call('a'), [CONFIRM])).not.toHaveProperty('ask.rules')
})

describe('the hash of what is shown', () => {
  test('is SHA-256 of the canonical JSON of {name, input}', () => {
    const text = '{"input":{"command":"ls","timeout":3},"name":"Bash"}'
    const expected = createHash('sha256').update(text).digest('hex')
    expect(hashInput('Bash', { timeout: 3, command: 'ls' })).toBe(expected)
  })

  test('is the same for an equal input, and for the same input of another tool another', () => {
    const input = { command: 'ls' }
    expect(hashInput('Bash', input)).toBe(hashInput('Bash', { ...input }))
    expect(hashInput('Bash', input)).not.toBe(hashInput('Bashh', input))
    expect(hashInput('Bashh', input)).toBe(hashInput('Bashh', { ...input }))
  })

  test.each<[string, string, unknown]>([
    ['another tool', 'Bashh', { command: 'ls' }],
    ['another value', 'Bash', { command: 'ls ' }],
    ['one more field', 'Bash', { command: 'ls', timeout: 1 }],
    ['text instead of an object', 'Bash', '{"command":"ls"}'],
    ['no input', 'Bash', null],
  ])('%s has another', (_, name, input) => {
    expect(hashInput(name, input)).not.toBe(hashInput('Bash', { command: 'ls' }))
  })
})
