import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { GatedCall } from '../../src/policy/permissions.ts'
import { callsToAsk, hashInput } from '../../src/policy/permissions.ts'

const call = (toolUseId: string, more: Partial<GatedCall> = {}): GatedCall => {
  return { toolUseId, name: 'Bash', input: { command: 'ls' }, approved: false, ...more }
}
const none = () => false
const idsOf = (...given: Parameters<typeof callsToAsk>) => callsToAsk(...given).map((asked) => asked.tool_use_id)

describe('the gate', () => {
  test('asks about nothing without confirmation mode', () => {
    expect(callsToAsk([call('a')], { confirmation: false }, none)).toEqual([])
  })

  test('asks about each call that is neither approved nor harmless, in order, and shows it', () => {
    const calls = [call('a'), call('b', { approved: true }), call('c', { name: 'Think' }), call('d')]
    expect(idsOf(calls, { confirmation: true }, ({ name }) => name === 'Think')).toEqual(['a', 'd'])
    expect(callsToAsk(calls, { confirmation: true }, none)[0]).toEqual({
      tool_use_id: 'a',
      name: 'Bash',
      input: { command: 'ls' },
      input_hash: hashInput('Bash', { command: 'ls' }),
      reason: expect.stringContaining('confirmation_mode'),
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
