import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { holdsLinks, isDirectory, realPath } from '../../src/policy/links/real-path.ts'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-real-path-'))
afterAll(() => rmSync(root, { recursive: true }))
mkdirSync(join(root, 'a/b'), { recursive: true })
writeFileSync(join(root, 'a/file'), '')
symlinkSync('a/b', join(root, 'link'))
symlinkSync('nowhere', join(root, 'dangling'))
symlinkSync('loop', join(root, 'loop'))

test.each([
  ['/', '/'],
  ['', ''],
  ['/a//b/.', '/a/b'],
  ['/link/new/x', '/a/b/new/x'],
  ['/link/..', '/a'],
  ['/link/../new', '/a/new'],
  ['/new/x/', '/new/x'],
])('%s leads to %s', (path, real) =>
  expect(realPath(path === '/' ? path : root + path)).toBe(path === '/' ? real : root + real),
)

test.each(['/new/..', '/new/../a', '/dangling', '/dangling/x', '/loop', '/a/file/x', '/a\0'])(
  'where %j leads is not certain',
  (path) => expect(realPath(root + path)).toBeUndefined(),
)

// Such a name is another one as text, and that one may be there, too.
symlinkSync(Buffer.from('\xff', 'latin1'), join(root, 'no-text'))
symlinkSync('/etc', Buffer.concat([Buffer.from(`${root}/`), Buffer.from('\xff', 'latin1')]))
writeFileSync(join(root, '\ufffd'), 'a decoy')

test.each(['/no-text', '/no-text/hosts'])('where %s leads is not certain, because its target is not UTF-8', (path) =>
  expect(realPath(root + path)).toBeUndefined(),
)

test.each([`/${'x'.repeat(300)}`, '/loop', '/loop/x'])('what cannot be looked up may be a directory: %s', (path) =>
  expect(isDirectory(root + path)).toBe(true),
)

symlinkSync('/proc/self/cwd', join(root, 'here'))
symlinkSync('/dev/fd', join(root, 'open'))

test.each([
  '/proc/self/cwd/x',
  '/proc/thread-self/cwd',
  '/proc/1/root/etc',
  '/proc/self/task/1/cwd',
  '/proc/./self//fd/3',
  '/dev/fd/../cwd/x',
  '/dev/fd/3',
  `${root}/here/x`,
  `${root}/open/../cwd`,
])('%s is another place for each process', (path) => expect(realPath(path)).toBeUndefined())

test.each(['/proc/cpuinfo', '/proc/self/status', '/proc/1/status', '/dev/null'])('%s is the same place', (path) =>
  expect(realPath(path)).toBe(path),
)

test('behind the first part of a path that is missing nothing is looked up', () => {
  const looks = vi.spyOn(fs, 'lstatSync')
  syncBuiltinESMExports()
  try {
    const looksOf = (path: string) => {
      looks.mockClear()
      realPath(root + path)
      return looks.mock.calls.length
    }
    const depth = root.split('/').length - 1
    expect(looksOf('/a/b')).toBe(depth + 2)
    expect(looksOf(`/missing${'/d'.repeat(2000)}`)).toBe(depth + 1)
  } finally {
    looks.mockRestore()
    syncBuiltinESMExports()
  }
})

test('links among the entries of a directory are found', () => {
  expect([root, `${root}/a`, `${root}/a/b`, `${root}/new`].map(holdsLinks)).toEqual([true, false, false, false])
  expect([root, `${root}/link`, `${root}/a/file`, `${root}/new`].map(isDirectory)).toEqual([true, true, false, false])
})
