import { expect, test } from 'vitest'
import { readAnswer, UnreadableAnswer } from '../../src/hooks/hook-answer.ts'

const read = (point: Parameters<typeof readAnswer>[0], answer: object) => readAnswer(point, JSON.stringify(answer))
const specific = (point: Parameters<typeof readAnswer>[0], more: object) =>
  read(point, { hookSpecificOutput: { hookEventName: point, ...more } })

test('text is context where Claude Code has it so, and nothing elsewhere', () => {
  expect(readAnswer('UserPromptSubmit', ' words \n')).toEqual({ context: 'words' })
  expect(readAnswer('SessionStart', '[1]')).toEqual({ context: '[1]' })
  expect(readAnswer('PreToolUse', 'words')).toEqual({})
  expect(readAnswer('SessionStart', '\n')).toEqual({})
})

test('each form of a decision about a call', () => {
  expect(specific('PreToolUse', { permissionDecision: 'ask', permissionDecisionReason: 'why' })).toEqual({
    decision: 'ask',
    reason: 'why',
  })
  expect(specific('PreToolUse', { permissionDecision: 'defer' })).toEqual({})
  expect(read('PreToolUse', { decision: 'approve' })).toEqual({ decision: 'allow' })
  expect(read('PreToolUse', { decision: 'block', reason: 'old' })).toEqual({ decision: 'deny', reason: 'old' })
  expect(specific('PermissionRequest', { decision: { behavior: 'allow', updatedInput: { a: 1 } } })).toEqual({
    decision: 'allow',
    updatedInput: { a: 1 },
  })
  expect(specific('PermissionRequest', { decision: { behavior: 'deny', message: 'no', interrupt: true } })).toEqual({
    decision: 'deny',
    reason: 'no',
    stop: 'no',
  })
})

test('blocking, stopping, rewriting and context', () => {
  expect(read('Stop', { decision: 'block' })).toEqual({ block: 'It gave no reason.' })
  expect(read('PostToolUse', { continue: false, systemMessage: 'm' })).toMatchObject({
    stop: expect.any(String),
    message: 'm',
  })
  expect(specific('PostToolUse', { updatedMCPToolOutput: '' })).toEqual({ updatedOutput: { value: '' } })
  expect(specific('PostToolUse', { updatedToolOutput: null, additionalContext: 'c' })).toMatchObject({ context: 'c' })
  expect(read('PreToolUse', { suppressOutput: true, somethingNew: 1 })).toEqual({})
})

test.each([
  '{',
  '{}}',
  '{"decision": "maybe"}',
  '{"continue": "no"}',
  '{"hookSpecificOutput": []}',
  '{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}',
  '{"hookSpecificOutput": {"permissionDecision": "yes"}}',
  '{"hookSpecificOutput": {"updatedInput": "ls"}}',
  `{"a": ${'['.repeat(1000)}${']'.repeat(1000)}}`,
])('%s cannot be read', (text) => {
  expect(() => readAnswer('PreToolUse', text)).toThrow(UnreadableAnswer)
})
