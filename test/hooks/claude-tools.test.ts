import { expect, test } from 'vitest'
import { showCall } from '../../src/hooks/claude-tools.ts'

test.each([
  ['Bash', { command: 'ls' }, 'Bash', { command: 'ls' }],
  ['FileEditor', { command: 'view', path: '/a' }, 'Read', { command: 'view', file_path: '/a' }],
  [
    'FileEditor',
    { command: 'create', path: '/a', file_text: 'c' },
    'Write',
    { command: 'create', file_path: '/a', content: 'c' },
  ],
  [
    'FileEditor',
    { command: 'str_replace', path: '/a', old_str: 'o', new_str: 'n' },
    'Edit',
    { command: 'str_replace', file_path: '/a', old_string: 'o', new_string: 'n' },
  ],
  [
    'Edit',
    { file_path: 'a', old_string: 'o', new_string: 'n' },
    'Edit',
    { file_path: '/work/a', old_string: 'o', new_string: 'n' },
  ],
  ['mcp__files__read', { path: 'a' }, 'mcp__files__read', { path: 'a' }],
])('%s %j is shown as %s', (name, input, shownName, shownInput) => {
  const shown = showCall(name, input, '/work')
  expect(shown).toMatchObject({ name: shownName, input: shownInput })
  expect(shown.names).toContain(name)
  expect(showCall(name, shown.toOwn(shown.input), '/work').input).toEqual(shownInput)
})

test('a path is shown as the tool opens it: whole, and with each `..` after a link', () => {
  const shownPath = (path: string) => showCall('Read', { file_path: path }, '/work').input['file_path']
  expect(['a', './/a', '/else/./a', 'link/../a', '/else/link/../a'].map(shownPath)).toEqual([
    '/work/a',
    '/work/a',
    '/else/a',
    '/work/link/../a',
    '/else/link/../a',
  ])
})

test('a patch fits the matchers of the tools that change files', () => {
  expect(showCall('apply_patch', { patch: '' }, '/work').names).toEqual(['apply_patch', 'Edit', 'Write', 'MultiEdit'])
})

test('a tool of another name than an object’s own is not translated', () => {
  expect(showCall('constructor', { a: 1 }, '/work')).toMatchObject({ name: 'constructor', input: { a: 1 } })
  expect(showCall('FileEditor', { command: 'constructor' }, '/work')).toMatchObject({ name: 'FileEditor' })
})
