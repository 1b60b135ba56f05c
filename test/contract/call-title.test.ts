import { expect, test } from 'vitest'
import { titleOf } from '../../src/contract/events/call-title.ts'

test.each([
  ['Bash', { command: 'ls', path: 'README.md' }, 'ls'],
  ['Read', { command: 'ls', file_path: '/secret', path: 'README.md' }, '/secret'],
  ['FileEditor', { path: '/secret', file_path: 'README.md', command: 'view' }, 'view /secret'],
  ['WebFetch', { url: 'https://example.com', command: 'ls' }, 'https://example.com'],
  ['Grep', { pattern: 'a', path: 'src' }, 'a'],
  ['mcp__files__read', { path: 'a', other: 'b' }, 'a'],
  ['Read', { other: 1 }, '{"other":1}'],
  ['Read', {}, ''],
])('the title of a call of %s with %j has only what the tool reads', (name, input, title) => {
  expect(titleOf(name, input)).toBe(title)
})
