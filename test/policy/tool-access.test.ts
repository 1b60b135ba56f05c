import { describe, expect, test } from 'vitest'
import type { ToolAccess } from '../../src/policy/tool-access.ts'
import type { Given } from './decisions.ts'
import { decideAccess } from './decisions.ts'

const read = (path: string): ToolAccess => ({ kind: 'read', paths: [path] })
const edit = (...paths: string[]): ToolAccess => ({ kind: 'edit', paths })
const fetching = (url: string): ToolAccess => ({ kind: 'fetch', url })
const behaviorOf = (tool: string, access: ToolAccess, given: Given = {}) => decideAccess(tool, access, given).behavior

describe('file tools', () => {
  test('read in the workdir without a question, and elsewhere with one', () => {
    expect(behaviorOf('Read', read('src/a.ts'))).toBe('allow')
    expect(behaviorOf('Read', read('/work/project/src/a.ts'), { mode: 'plan' })).toBe('allow')
    expect(behaviorOf('Read', read('../other/a.ts'))).toBe('ask')
    expect(behaviorOf('Read', read('link/passwd'), { links: { '/work/project/link': '/etc' } })).toBe('ask')
  })

  test.each([
    ['default', 'ask'],
    ['accept_edits', 'allow'],
    ['plan', 'deny'],
    ['bypass', 'allow'],
    ['deny', 'deny'],
    ['callback', 'deny'],
  ] as const)('edit in the mode %s: %s', (mode, behavior) => {
    expect(behaviorOf('Edit', edit('src/a.ts'), { mode })).toBe(behavior)
  })

  test('ask in accept_edits about files outside the workdir and those that other programs run', () => {
    for (const path of [
      '../a',
      '/etc/a',
      '.git/config',
      'sub/.git/hooks/x',
      '.GIT/config',
      '.husky/x',
      'HEAD',
      '.npmrc',
      '.openhands/settings_sdk.json',
      '.config/agent-server/AGENTS.md',
      '.claude/CLAUDE.md',
    ])
      expect(behaviorOf('Write', edit(path), { mode: 'accept_edits' }), path).toBe('ask')
    expect(behaviorOf('apply_patch', edit('a.ts', '.git/config'), { mode: 'accept_edits' })).toBe('ask')
  })

  test('follow Read and Edit rules, whatever their name is', () => {
    const rules = { allow: ['Edit(src/**)'], deny: ['Edit(src/locked)', 'Read(~/.ssh/**)'] }
    expect(behaviorOf('FileEditor', edit('src/a/b.ts'), rules)).toBe('allow')
    expect(behaviorOf('FileEditor', edit('src/locked/b.ts'), rules)).toBe('deny')
    expect(behaviorOf('FileEditor', edit('lib/b.ts'), rules)).toBe('ask')
    expect(behaviorOf('apply_patch', edit('src/a.ts', 'src/locked/b.ts'), rules)).toBe('deny')
    expect(behaviorOf('Read', read('/home/user/.ssh/id_rsa'), { ...rules, mode: 'bypass' })).toBe('deny')
    expect(behaviorOf('Read', read('/work/project/../../home/user/.ssh/x'), { ...rules, mode: 'bypass' })).toBe('deny')
    expect(behaviorOf('Write', edit('/home/user/.ssh/x'), { ...rules, mode: 'bypass' })).toBe('deny')
    expect(
      behaviorOf('Edit', edit('link/x'), { ...rules, links: { '/work/project/link': '/work/project/src/locked' } }),
    ).toBe('deny')
  })
})

describe('other tools', () => {
  test('fetch from the hosts that a rule names', () => {
    const rules = { allow: ['WebFetch(domain:example.org)', 'WebFetch(domain:*.example.com)'] }
    for (const url of ['https://example.org/x', 'http://EXAMPLE.org.:8080/', 'https://a.example.com'])
      expect(behaviorOf('WebFetch', fetching(url), rules), url).toBe('allow')
    for (const url of [
      'https://example.com',
      'https://example.org.example.net',
      'https://example.org@example.net',
      'x',
    ])
      expect(behaviorOf('WebFetch', fetching(url), rules), url).toBe('ask')
    expect(behaviorOf('WebFetch', fetching('https://example.org'), { mode: 'bypass', deny: ['WebFetch'] })).toBe('deny')
  })

  test('of an MCP server are named one by one or all together', () => {
    const access: ToolAccess = { kind: 'other' }
    expect(behaviorOf('mcp__files__read', access)).toBe('ask')
    expect(behaviorOf('mcp__files__read', access, { allow: ['mcp__files__read'] })).toBe('allow')
    expect(behaviorOf('mcp__files__read', access, { allow: ['mcp__files'] })).toBe('allow')
    expect(behaviorOf('mcp__files2__read', access, { allow: ['mcp__files'] })).toBe('ask')
    expect(behaviorOf('mcp__files__read', access, { mode: 'bypass', deny: ['mcp__files'] })).toBe('deny')
    expect(behaviorOf('mcp__files__read', access, { mode: 'plan', allow: ['mcp__files'] })).toBe('deny')
  })

  test('that touch nothing need no question in any mode, and can be denied by name', () => {
    for (const mode of ['default', 'plan', 'deny'] as const)
      expect(behaviorOf('Think', { kind: 'none' }, { mode, confirmation: true })).toBe('allow')
    expect(behaviorOf('Think', { kind: 'none' }, { deny: ['Think'] })).toBe('deny')
  })
})

test('a question about a request names its host, and only the rule for it', () => {
  const asked = (url: string | undefined) => decideAccess('WebFetch', { kind: 'fetch', url })
  expect(asked('https://a.example/x?y')).toMatchObject({
    behavior: 'ask',
    reason: 'it reaches a.example',
    rules: ['WebFetch(domain:a.example)'],
  })
  expect(asked(undefined)).toMatchObject({ behavior: 'ask', reason: 'it reaches the network', rules: ['WebFetch'] })
  expect(asked('no url')).toMatchObject({ behavior: 'ask', reason: 'it reaches the network' })
  expect(asked('no url')).not.toHaveProperty('rules')
})

test.each([
  ['a host with a star', 'WebFetch', { kind: 'fetch', url: 'http://*.com/' }],
  ['an IPv6 address', 'WebFetch', { kind: 'fetch', url: 'http://[2606:4700::1111]/' }],
  ['a tool whose name ends as that of a server', 'mcp__tickets__close__', { kind: 'other' }],
] as const)('a question about %s names no rule: none says exactly this', (_, tool, access) => {
  const asked = decideAccess(tool, access)
  expect(asked.behavior).toBe('ask')
  expect(asked).not.toHaveProperty('rules')
})
