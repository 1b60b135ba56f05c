import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
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

describe('the hash of what is shown', () => {
  test('is SHA-256 of the canonical JSON of {name, input}', () => {
    const text = '{"input":{"command":"ls","timeout":3},"name":"Bash"}'
    const expected = createHash('sha256').update(text).digest('hex')
    expect(hashInput('Bash', { timeout: 3, command: 'ls' })).toBe(expected)
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
