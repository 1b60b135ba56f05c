import { symlink } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createGlob } from '../../../src/tools/search/glob.ts'
import { contextIn } from '../tool-fixture.ts'
import { openSearch } from './search-fixture.ts'

const FILES = {
  'src/new.ts': '',
  'a.ts': '',
  'src/deep/view.tsx': '',
  'src/deep/b.ts': '',
  'readme.md': '',
  '.github/ci.yml': '',
  'node_modules/x/index.ts': '',
  '.git/hooks.ts': '',
}

describe('Glob finds, newest first,', () => {
  test.each([
    ['**/*.ts', undefined, ['src/new.ts', 'a.ts', 'src/deep/b.ts']],
    ['*.ts', undefined, ['src/new.ts', 'a.ts', 'src/deep/b.ts']],
    ['src/*.ts', undefined, ['src/new.ts']],
    ['./src/**/*.{ts,tsx}', undefined, ['src/new.ts', 'src/deep/view.tsx', 'src/deep/b.ts']],
    ['**/{deep,.github}/*.{t,}s', undefined, ['src/deep/b.ts']],
    ['*', 'src/deep', ['src/deep/view.tsx', 'src/deep/b.ts']],
    ['*.yml', undefined, ['.github/ci.yml']],
    ['readme.md', undefined, ['readme.md']],
    ['src/new.ts', undefined, ['src/new.ts']],
    ['**/*.ts', 'node_modules', ['node_modules/x/index.ts']],
    ['[ab].ts', undefined, ['a.ts', 'src/deep/b.ts']],
    ['*.py', undefined, ['No files found.']],
  ])('%s in %s', async (pattern, path, found) => {
    const { say } = await openSearch(createGlob, FILES)
    expect((await say({ pattern, ...(path !== undefined && { path }) })).split('\n')).toEqual(found)
  })

  test('files of an absolute pattern, with absolute paths outside of the workdir', async () => {
    const { say, at, callWith: _, readonly } = await openSearch(createGlob, FILES)
    expect(await say({ pattern: at('src/*.ts') })).toBe('src/new.ts')
    expect(await say({ pattern: `${readonly}/*` })).toBe('No files found.')
  })

  test('at most 100, and says how many more there are', async () => {
    const many = Object.fromEntries(Array.from({ length: 103 }, (_, at) => [`f${at}`, '']))
    const { call } = await openSearch(createGlob, many)
    const { output, truncated } = await call({ pattern: 'f*' })
    const lines = String(output).split('\n')
    expect(lines).toHaveLength(101)
    expect(lines[0]).toBe('f0')
    expect(lines[100]).toBe('[3 more files match; use a narrower pattern.]')
    expect(truncated).toBe(true)
  })
})

test('links are neither found nor followed, and nothing of the server is found', async () => {
  const { say, call, at, server } = await openSearch(createGlob, { a: '' })
  await symlink(server, at('link'))
  await symlink('a', at('b'))
  expect(await say({ pattern: '**/*' })).toBe('a')
  expect((await call({ pattern: '*', path: 'link' })).error).toMatchObject({ type: 'denied' })
})

test('a directory that is missing is an error', async () => {
  const { fault } = await openSearch(createGlob, {})
  expect(await fault({ pattern: '*', path: 'missing' })).toMatch(/does not exist/)
})

test('an abort ends it as interrupted', async () => {
  const { tool, workdir } = await openSearch(createGlob, FILES)
  const outcome = await tool.run({ pattern: '*' }, contextIn(workdir, { signal: AbortSignal.abort() }))
  expect(outcome.error?.type).toBe('interrupted')
})
