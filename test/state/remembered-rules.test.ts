/** What a decision adds to the permission rules when it is to be remembered. */
import { expect, test } from 'vitest'
import { MAX_RULE_TEXT_CHARS, MAX_RULES } from '../../src/contract/values/permission.ts'
import { rememberedRules } from '../../src/state/remembered-rules.ts'
import { asked, conversationId, folded, settings, status, toolUse } from '../conversations/events.ts'

const RULE = 'Bash(true:*)'

function remembered(behavior: 'allow' | 'deny', earlierRules: readonly string[] = [], updated_input?: object) {
  const opened = asked(['a'])
  const tool_uses = opened.payload.tool_uses.map((each) => ({ ...each, rules: [RULE] }))
  const rules = { allow: [], ask: ['Read'], deny: [], [behavior]: [...earlierRules] }
  const from = { ...folded([]), id: conversationId, settings: { ...settings, permission_rules: rules } }
  const state = folded([status('running'), toolUse('a'), { ...opened, payload: { tool_uses } }], from)
  const made = { tool_use_id: 'a', input_hash: tool_uses[0]!.input_hash, behavior }
  const decision = { ...made, remember: true, ...(updated_input && { updated_input: { ...updated_input } }) }
  return rememberedRules(state, state.request!, [decision], [made])
}

test.each(['allow', 'deny'] as const)(
  'the user has added the rules of a call to those that %s, each once',
  (behavior) => {
    const others = { allow: [], ask: ['Read'], deny: [] }
    const changeTo = (rules: readonly string[]) => ({ permission_rules: { ...others, [behavior]: rules } })
    expect(remembered(behavior, ['Edit'])).toEqual([
      { type: 'ConfigUpdate', source: 'user', changes: changeTo(['Edit', RULE]) },
    ])
    expect(remembered(behavior, [RULE])).toMatchObject([{ changes: changeTo([RULE]) }])
  },
)

test('rules beyond the limit, and those of another input than the shown one, are refused', () => {
  const rules = Array.from({ length: MAX_RULES }, (_, at) => `Bash(${at}:*)`)
  expect(remembered('allow', rules)).toMatchObject({ code: 'limit_reached' })
  expect(remembered('deny', rules)).toMatchObject({ code: 'limit_reached' })
  expect(remembered('allow', rules.slice(1))).toHaveLength(1)
  expect(remembered('allow', [], { command: 'false' })).toMatchObject({ code: 'invalid_request' })
})

test('a rule that is longer than one that is accepted can be read from the log', () => {
  const rule = `Bash(touch ${'x'.repeat(MAX_RULE_TEXT_CHARS)})`
  const changes = { permission_rules: { allow: [rule], ask: [], deny: ['-tool'] } }
  const { settings } = folded([{ type: 'ConfigUpdate', source: 'user', changes }])
  expect(settings.permission_rules).toEqual(changes.permission_rules)
})

test('nothing is added without a wish, nor by a decision that came before', () => {
  const made = { tool_use_id: 'a', input_hash: 'h', behavior: 'allow' } as const
  const { request, ...state } = folded([status('running'), toolUse('a'), asked(['a'])])
  const added = (remember: boolean, ...stored: (typeof made)[]) =>
    rememberedRules({ ...state, request }, request!, [{ ...made, remember }], stored)
  expect(added(false, made)).toEqual([])
  expect(added(true)).toEqual([])
})

test('a call that no rule says exactly, and one that nobody asked about, cannot be remembered', () => {
  const state = folded([status('running'), toolUse('a'), asked(['a'])])
  for (const tool_use_id of ['a', 'other']) {
    const made = { tool_use_id, input_hash: 'h', behavior: 'allow' } as const
    const outcome = rememberedRules(state, state.request!, [{ ...made, remember: true }], [made])
    expect(outcome).toMatchObject({ code: 'invalid_request' })
  }
})
