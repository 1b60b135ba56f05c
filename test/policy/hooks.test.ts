import { describe, expect, test } from 'vitest'
import { decideCommand } from './decisions.ts'

const touch = (given: Parameters<typeof decideCommand>[1]) => decideCommand('touch made', given).behavior
const allow = { hook: { decision: 'allow' } } as const
const ask = { hook: { decision: 'ask' } } as const
const deny = { hook: { decision: 'deny' } } as const

describe('the order of a decision', () => {
  test('a hook that denies comes first, also before an approval', () => {
    expect(touch({ ...deny, mode: 'bypass', approved: true, allow: ['Bash'] })).toBe('deny')
  })

  test('a hook that allows is an allow rule: it skips no other rule, no plan and no confirmation', () => {
    for (const mode of ['default', 'accept_edits', 'deny', 'callback', 'bypass'] as const)
      expect([mode, touch({ ...allow, mode })]).toEqual([mode, 'allow'])
    expect(touch({ ...allow, mode: 'plan' })).toBe('deny')
    expect(touch({ ...allow, mode: 'bypass', ask: ['Bash(touch:*)'] })).toBe('ask')
    expect(touch({ ...allow, mode: 'bypass', deny: ['Bash(touch:*)'] })).toBe('deny')
    expect(touch({ ...allow, mode: 'default', confirmation: true })).toBe('ask')
  })

  test('a hook that asks is a question that only an approval answers', () => {
    for (const mode of ['default', 'accept_edits', 'bypass'] as const)
      expect([mode, touch({ ...ask, mode, allow: ['Bash'] })]).toEqual([mode, 'ask'])
    expect(touch({ ...ask, mode: 'deny' })).toBe('deny')
    expect(touch({ ...ask, mode: 'bypass', approved: true })).toBe('allow')
  })

  test('in the mode callback an approver is asked, if there is one', () => {
    expect(touch({ mode: 'callback' })).toBe('deny')
    expect(touch({ mode: 'callback', hasApprover: true })).toBe('ask')
    expect(touch({ mode: 'callback', hasApprover: true, deny: ['Bash(touch:*)'] })).toBe('deny')
  })
})
