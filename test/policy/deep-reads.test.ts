import { expect, test } from 'vitest'
import { decideAccess } from './decisions.ts'

const search = (path: string, deny: readonly string[]) =>
  decideAccess('Grep', { kind: 'read', paths: [path], isDeep: true }, { deny }).behavior

test.each([
  ['a directory above the file', '.', 'ask'],
  ['a parent directory given by its path', '/work/project/src', 'ask'],
  ['another directory', 'docs', 'allow'],
  ['the denied file itself', 'src/.env', 'deny'],
])('a search of %s is not allowed past a deny rule for one file', (_, path, behavior) => {
  expect(search(path, ['Read(src/.env)'])).toBe(behavior)
})

test('a search needs no decision where no deny rule names a file', () => {
  expect(search('.', [])).toBe('allow')
})

test('a tool that does not read recursively may read a directory without a question', () => {
  const access = { kind: 'read', paths: ['.'] } as const
  expect(decideAccess('FileEditor', access, { deny: ['Read(src/.env)'] }).behavior).toBe('allow')
})
