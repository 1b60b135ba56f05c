import { describe, expect, test } from 'vitest'
import { coarseRules } from '../../src/policy/rules/rule.ts'
import { faultsOf, ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import type { ToolAccess } from '../../src/policy/tool-access.ts'
import { decideAccess } from './decisions.ts'

const OTHER: ToolAccess = { kind: 'other' }

describe('a rule for tools of an MCP server', () => {
  test.each([
    ['mcp__files__*', 'mcp__files__read', true],
    ['mcp__files', 'mcp__files__read', true],
    ['mcp__files__re*', 'mcp__files__read', true],
    ['mcp__files__re*', 'mcp__files__write', false],
    ['mcp__files__*', 'mcp__files2__read', false],
    ['mcp__*', 'mcp__files__read', true],
    ['mcp__*', 'Task', false],
    ['*', 'Task', true],
  ])('%s: whether it denies %s is %s', (rule, tool, isDenied) => {
    const { behavior } = decideAccess(tool, OTHER, { mode: 'bypass', deny: [rule] })
    expect(behavior).toBe(isDenied ? 'deny' : 'allow')
  })

  test.each([
    ['mcp__files', true],
    ['mcp__files__*', true],
    ['mcp__*', true],
    ['mcp__files__read', false],
    ['mcp__file', false],
    ['Task', false],
  ])('%s: whether it denies a tool that reads from the server files is %s', (rule, isDenied) => {
    for (const kind of ['other', 'none'] as const) {
      const access: ToolAccess = { kind, mcpServers: ['docs', 'files'] }
      const { behavior } = decideAccess('ReadResource', access, { mode: 'bypass', deny: [rule] })
      expect(behavior, kind).toBe(isDenied ? 'deny' : 'allow')
    }
  })

  test.each([
    ['mcp__s', ['mcp__s', 'mcp__s__t', 'mcp__s__t__u']],
    ['mcp__s__t', ['mcp__s__t']],
    ['mcp__s__t__u', ['mcp__s__t__u']],
    ['Bash', ['Bash']],
    ['s', []],
  ])('is for the named tools only: %s is about no more than %j', (rule, tools) => {
    const all = ['mcp__s', 'mcp__s__t', 'mcp__s__t__u', 'mcp__st__u', 'Bash', 'Bash__x', 's__t']
    const isDenied = (tool: string) => decideAccess(tool, OTHER, { deny: [rule] }).behavior === 'deny'
    expect(all.filter(isDenied)).toEqual(tools)
  })

  test('allows only what a literal server name begins', () => {
    expect(decideAccess('mcp__files__read', OTHER, { allow: ['mcp__files__*'] }).behavior).toBe('allow')
    for (const rule of ['mcp__*', '*', 'mcp__fi*', 'mcp__f*__read']) {
      expect(faultsOf({ allow: [rule], ask: [], deny: [] }), rule).toHaveLength(1)
      expect(decideAccess('mcp__files__read', OTHER, { allow: [rule] }).behavior, rule).toBe('ask')
    }
  })
})

test.each([
  'Bash(touch:*)(x)',
  'Bash(touch (x)',
  'Bash(x))',
  'mcp__',
  'mcp____x',
  'mcp__server__',
  'bash(touch:*)',
  'Edit(src/[a)',
  'Edit(src/a])',
  'Edit(src)(x)',
  'Read()',
  'Read( )',
  'Bash()',
  'WebFetch()',
  'B*sh',
  'Bash(git\u00A0push:*)',
  'Bash(git push\u3000--force)',
  'Bash(git\u0085push:*)',
  'Bash(git pu\u200Bsh:*)',
  'Bash(git\rpush)',
  'Bash\u00A0(git push)',
  'Read(./\u00A0.env)',
  'Read(secrets\u2009/**)',
  'Edit(\u200B.env)',
  '(x)',
  'a b',
])('%s is not a rule in any list', (text) => {
  for (const list of ['allow', 'ask', 'deny'] as const)
    expect(faultsOf({ allow: [], ask: [], deny: [], [list]: [text] }), list).toHaveLength(1)
})

test.each([
  'Bash(git commit -m (x))',
  'Edit(app/[id]/page.tsx)',
  'Read(app/(group)/a)',
  'Read(3.12\u202FPM.png)',
  'Bash(git\tpush:*)',
  'mcp__a_b__c',
  'mcp__a-b__*',
])('%s is a rule', (text) => expect(faultsOf({ allow: [text], ask: [text], deny: [text] })).toEqual([]))

test.each([
  ['Bash(a', ['Bash']],
  ['Bash', ['Bash']],
  ['Read()', ['Read', 'Bash']],
  ['Edit()', ['Edit', 'Bash']],
  ['Task(a)', ['Task']],
  ['1Bash(a', ['*']],
  ['(Bash(a', ['*']],
  ['Bash a(', ['*']],
  ['mcp__', ['*']],
  [' Bash(a', ['Bash']],
  ['', ['*']],
])('%j, if it cannot be read, is a question about each call of %j', (text, tools) => {
  expect(coarseRules(text)).toEqual(tools)
})

test('a rule that calls Task by its name in later versions of Claude Code is about Task', () => {
  for (const tool of ['Task', 'Tasks', 'Bash'])
    expect(decideAccess(tool, OTHER, { deny: ['Agent'] }).behavior, tool).toBe(tool === 'Task' ? 'deny' : 'ask')
})

test('a message shows up to 100 characters of a rule', () => {
  const faultOf = (length: number) => faultsOf({ allow: [], ask: [], deny: ['('.padEnd(length, 'a')] })[0]
  expect(faultOf(100)).toContain(`"(${'a'.repeat(99)}" is not a rule`)
  expect(faultOf(101)).toContain(`"(${'a'.repeat(99)}…" is not a rule`)
})

test('a stored rule that cannot be read never makes a conversation less strict', () => {
  const stored = {
    allow: ['Read()', 'Bash(npm test)'],
    ask: ['mcp__'],
    deny: ['Bash(touch:*)(x)', 'Edit(src/[a)', 'Bash(git\u00A0push)'],
  }
  const { allow, ask, deny } = ruleSetOf(stored)
  expect([allow, ask, deny].map((rules) => rules.map(({ text }) => text))).toEqual([
    ['Bash(npm test)'],
    ['*', 'Bash', 'Edit', 'Bash', 'Bash'],
    [],
  ])
})
