import { expect, test } from 'vitest'
import { readMatcher } from '../../src/contract/hooks/matcher.ts'
import type { CallbackHook } from '../../src/hooks/select-hooks.ts'
import { selectHooks } from '../../src/hooks/select-hooks.ts'

const selects = (matcher: string | undefined, ...names: string[]) =>
  selectHooks({ PreToolUse: [{ matcher, hooks: [{ type: 'command', command: 'x' }] }] }, [], 'PreToolUse', names)
    .length > 0

test.each([
  [undefined, 'Bash', true],
  ['', 'Bash', true],
  ['*', 'Bash', true],
  ['Bash', 'Bash', true],
  ['Bash', 'BashOutput', false],
  ['bash', 'Bash', false],
  ['Edit|Write', 'Write', true],
  ['Edit|Write', 'MultiEdit', false],
  ['Notebook.*', 'NotebookEdit', true],
  ['.*', 'Anything', true],
  ['mcp__memory__.*', 'mcp__memory__create_entities', true],
  ['mcp__memory__.*|Bash', 'Bash', true],
  ['mcp__.*__write.*', 'mcp__files__write_file', true],
  ['mcp__github', 'mcp__github__search', false],
  ['^(Edit|Write)$', 'Write', true],
  ['^(Edit|Write)$', 'MultiEdit', false],
  ['^Edit|Write$', 'OverWrite', true],
  ['[BE]\\w+', 'Edit', true],
] as const)('%j for %s: %s', (matcher, name, expected) => {
  expect(selects(matcher, name)).toBe(expected)
})

test.each([
  '(a+)+$',
  '(a*)*b',
  '(.*)*',
  'a**',
  '.*.*.*x',
  '(?=x)y',
  '(?<n>a)',
  'a{1,100}',
  '\\1',
  '[',
  '(',
  'a'.repeat(501),
])('%s is refused', (text) => {
  expect(readMatcher(text)).toHaveProperty('fault')
})

test('a pattern that is accepted ends on each name, and a longer name is never let through', () => {
  expect(selects('.*a.*b', 'a'.repeat(256))).toBe(false)
  expect(selects('\\w+x\\w+y', 'x'.repeat(256))).toBe(false)
  expect(selects('Bash.+', 'a'.repeat(257))).toBe(true)
})

test('any of several names fits; a point without names has no matcher', () => {
  expect(selects('Edit', 'Edit', 'FileEditor')).toBe(true)
  expect(selects('FileEditor', 'Edit', 'FileEditor')).toBe(true)
  expect(selects('Bash')).toBe(true)
})

test('identical commands and URLs are called once, callbacks with the others', () => {
  const callback: CallbackHook = { type: 'callback', point: 'Stop', name: 'own', call: async () => ({}) }
  const http = { type: 'http' as const, url: 'https://example.com' }
  const hooks = {
    Stop: [
      { hooks: [{ type: 'command' as const, command: 'a' }, http] },
      {
        matcher: '*',
        hooks: [{ type: 'command' as const, command: 'a' }, { type: 'command' as const, command: 'b' }, http],
      },
    ],
  }
  const selected = selectHooks(hooks, [callback], 'Stop', [])
  expect(selected.map((hook) => ('command' in hook ? hook.command : hook.type))).toEqual(['a', 'http', 'b', 'callback'])
  expect(selectHooks(hooks, [callback], 'PreCompact', [])).toEqual([])
})
