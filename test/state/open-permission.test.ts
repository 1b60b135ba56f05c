import { expect, test } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import type { PermissionAnswered } from '../../src/state/open-permission.ts'
import { openPermission, repeats, undecidedCalls, withDecision } from '../../src/state/open-permission.ts'
import { asked, decided, stored } from '../conversations/events.ts'

const opened = stored(asked(['a', 'b']), 1) as Parameters<typeof openPermission>[0]
const answers = [
  stored(decided('a', { answered_by: 'hook' }), 2),
  stored(decided('b', { behavior: 'deny', message: 'No.' }), 3),
] as PermissionAnswered[]
const decisionOf = (id: string, more: object = {}) => ({ ...decided(id, more).answer.decisions[0]! })

test.each([
  ['the same, of which a hook made a part', [decisionOf('a'), decisionOf('b', { behavior: 'deny' })], 'same'],
  ['a part of it', [decisionOf('a')], 'same'],
  ['another decision', [decisionOf('a'), decisionOf('b')], 'other'],
  ['another input', [decisionOf('a', { updated_input: { command: 'ls' } })], 'other'],
])('after a request is closed, %s is compared with what was decided', (_, decisions, expected) => {
  expect(repeats(opened, answers, decisions)).toBe(expected)
})

test('after a request is closed, a call that was not decided has no answer, and one that was not shown is refused', () => {
  expect(repeats(opened, answers.slice(0, 1), [decisionOf('b')])).toBe('none')
  const refusals = [
    repeats(opened, answers, [decisionOf('c')]),
    repeats(opened, answers, [decisionOf('a', { input_hash: '0'.repeat(64) })]),
  ]
  expect(refusals.map((refusal) => refusal instanceof Problem && refusal.code)).toEqual([
    'invalid_request',
    'input_changed',
  ])
})

test('a decision about another request, or about other content, leaves the call undecided', () => {
  const request = openPermission(opened)
  const idsLeft = (after: typeof request | undefined) => undecidedCalls(after).map(({ toolUseId }) => toolUseId)
  expect(idsLeft(withDecision(request, opened.request_id, decisionOf('a')))).toEqual(['b'])
  expect(idsLeft(withDecision(request, 'another', decisionOf('a')))).toEqual(['a', 'b'])
  const changed = decisionOf('a', { input_hash: '0'.repeat(64) })
  expect(idsLeft(withDecision(request, opened.request_id, changed))).toEqual(['a', 'b'])
})
