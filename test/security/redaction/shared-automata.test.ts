import { expect, test } from 'vitest'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'
import { createSharedAutomata } from '../../../src/security/redaction/shared-automata.ts'

const KEY = 'sk-live-0123456789'
const secretsOf = (name: string, isServerKey: boolean) => [[name, { values: [KEY], isServerKey }]] as const

test('the same secrets share what finds them; another name, value or kind does not', () => {
  const automataOf = createSharedAutomata()
  const one = automataOf(secretsOf('A', false))
  expect(automataOf(secretsOf('A', false))).toBe(one)
  expect(automataOf(secretsOf('B', false))).not.toBe(one)
  expect(automataOf(secretsOf('A', true))).not.toBe(one)
  expect(automataOf([['A', { values: [`${KEY}x`], isServerKey: false }]])).not.toBe(one)
})

test('redactors that share replace a value by the name that each of them has for it', () => {
  const automataOf = createSharedAutomata()
  const redactors = ['A', 'B', 'A'].map((name) => {
    const redactor = createRedactor(automataOf)
    redactor.set(name, KEY)
    return redactor
  })
  expect(redactors.map(({ redact }) => redact(KEY))).toEqual(['<secret:A>', '<secret:B>', '<secret:A>'])
  redactors[0]!.delete('A')
  expect(redactors.map(({ redact }) => redact(KEY))).toEqual([KEY, '<secret:B>', '<secret:A>'])
})
