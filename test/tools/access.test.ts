/** What each tool tells the permission gate about a call. */
import { expect, test } from 'vitest'
import { UNUSED_DEPS } from '../../scripts/tool-costs.ts'
import { createTools } from '../../src/tools/registry.ts'

const deps = {
  ...UNUSED_DEPS,
  shells: { ...UNUSED_DEPS.shells, standOf: (id: string) => ({ cwd: `/work/${id}`, evaluates: [], path: '/bin' }) },
}

const PATCH =
  '*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** Delete File: d\n*** End Patch'

test.each([
  ['Read', { file_path: 'a' }, { kind: 'read', paths: ['a'] }],
  ['Glob', { pattern: '*.ts' }, { kind: 'read', paths: ['.'], isDeep: true }],
  ['Glob', { pattern: '/etc/*.conf' }, { kind: 'read', paths: ['/etc'], isDeep: true }],
  ['Glob', { pattern: '../x/*', path: 'src' }, { kind: 'read', paths: ['src/../x'], isDeep: true }],
  ['Grep', { pattern: 'x' }, { kind: 'read', paths: ['.'], isDeep: true }],
  ['Grep', { pattern: 'x', path: '/etc' }, { kind: 'read', paths: ['/etc'], isDeep: true }],
  ['Write', { file_path: 'a', content: '' }, { kind: 'edit', paths: ['a'], isWhole: true }],
  ['Edit', { file_path: 'a', old_string: 'x', new_string: 'y' }, { kind: 'edit', paths: ['a'], isWhole: false }],
  [
    'MultiEdit',
    { file_path: 'a', edits: [{ old_string: 'x', new_string: 'y' }] },
    { kind: 'edit', paths: ['a'], isWhole: false },
  ],
  ['apply_patch', { input: PATCH }, { kind: 'edit', paths: ['a', 'b', 'd', 'c'], isWhole: true }],
  ['apply_patch', { input: 'no patch' }, { kind: 'none' }],
  [
    'Bash',
    { command: 'ls', run_in_background: true },
    { kind: 'command', command: 'ls', cwd: '/work/agent', evaluates: [], path: '/bin' },
  ],
  [
    'Bash',
    { command: 'ls', session_id: 'two' },
    { kind: 'command', command: 'ls', cwd: '/work/two', evaluates: [], path: '/bin' },
  ],
  ['Bash', { command: ' \t\n' }, { kind: 'none' }],
  // Only these are blank to bash. Any other is the name of a command, and a shell may have a function of this name.
  ...['\r', '\u00A0', '\u3000', '\v', '\f', '\uFEFF', '\u2028'].map((command): [string, object, object] => [
    'Bash',
    { command },
    { kind: 'command', command, cwd: '/work/agent', evaluates: [], path: '/bin' },
  ]),
  ['BashOutput', { bash_id: 'x' }, { kind: 'none' }],
  ['KillShell', { shell_id: 'x' }, { kind: 'none' }],
  ['WebFetch', { url: 'https://example.com/' }, { kind: 'fetch', url: 'https://example.com/' }],
  ['WebSearch', { query: 'prices' }, { kind: 'fetch', url: undefined }],
])('%s %j', (name, input, access) => {
  const [tool] = createTools([name], deps)
  expect(tool?.access?.(tool.input.parse(input))).toEqual(access)
})
