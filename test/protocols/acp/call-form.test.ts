/** What an editor shows of a call: the change that the tool makes, and every field that this does not show. */
import { expect, test } from 'vitest'
import { fence, formOfCall, wholeCall } from '../../../src/protocols/acp/call-form.ts'

const shown = (name: string, input: object) => JSON.stringify(wholeCall(name, input, '/w', ''))

test.each([
  ['FileEditor', { command: 'create', path: '/h/.bashrc', file_text: 'EVIL', old_str: 'a', new_str: 'b' }],
  ['Write', { file_path: '/w/a', content: 'EVIL', old_string: 'a', new_string: 'b' }],
  ['Edit', { file_path: '/w/a', old_string: 'a', new_string: 'EVIL', edits: [{ old_string: 'a', new_string: 'b' }] }],
  ['mcp__ops__run', { path: '/w/a', content: 'harmless', input: 'EVIL' }],
  ['MultiEdit', { file_path: '/w/a', edits: [{ old_string: 'a', new_string: 'b', replace_all: 'EVIL' }] }],
  ['apply_patch', { input: '*** Begin Patch\nEVIL', path: 'x' }],
])('%s hides nothing behind fields that it does not read', (name, input) => {
  expect(shown(name, input)).toContain('EVIL')
  const values = Object.entries(input).filter(([field]) => !['path', 'file_path', 'input'].includes(field))
  for (const [, value] of values) if (typeof value === 'string') expect(shown(name, input)).toContain(value)
})

test('the title and the place are those of the field that the tool reads', () => {
  const decoy = { command: 'create', path: '/h/.bashrc', file_path: '/w/README.md', file_text: 'x' }
  const { title, locations } = formOfCall('FileEditor', decoy, '/w', undefined)
  expect([title, locations]).toEqual(['create /h/.bashrc', [{ path: '/h/.bashrc' }]])
  expect(shown('FileEditor', decoy)).toContain('README.md')
  const fetched = formOfCall('WebFetch', { url: 'https://example.com', path: '/w/README.md' }, '/w', undefined)
  expect([fetched.title, fetched.locations]).toEqual(['WebFetch https://example.com', []])
})

test('a block ends after its text, however many backticks that has', () => {
  expect(fence('` '.repeat(200_000)).endsWith('\n```')).toBe(true)
})
