import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { TAR_END, tarHeader, tarPadding } from '../../../src/files/trees/tar.ts'
import type { TarEntry } from '../../../src/files/trees/tar.ts'

const entry = (path: string | Buffer, more: Partial<TarEntry> = {}): TarEntry => {
  return { path: Buffer.from(path), kind: 'file', size: 0, mode: 0o644, mtime: 1_700_000_000.5, ...more }
}

function list(...parts: Buffer[]): string[] {
  const input = Buffer.concat([...parts, TAR_END])
  return execFileSync('tar', ['--list', '--verbose', '--quoting-style=escape', '--utc', '--full-time'], { input })
    .toString()
    .trim()
    .split('\n')
}

test('tar reads what was written: kinds, permissions, times, sizes', () => {
  const content = Buffer.from('hello')
  const lines = list(
    tarHeader(entry('dir', { kind: 'directory', mode: 0o755 })),
    tarHeader(entry('dir/file', { size: content.length, mode: 0o100600 })),
    content,
    tarPadding(content.length),
    tarHeader(entry('link', { kind: 'symlink', target: Buffer.from('../elsewhere') })),
  )
  expect(lines.map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    'drwxr-xr-x 0/0 0 2023-11-14 22:13:20 dir/',
    '-rw------- 0/0 5 2023-11-14 22:13:20 dir/file',
    'lrw-r--r-- 0/0 0 2023-11-14 22:13:20 link -> ../elsewhere',
  ])
})

test.each([100, 101, 255, 256, 4000])('a path of %i bytes comes through, and a target', (length) => {
  const path = `${'d'.repeat(length - 2)}/f`
  expect(list(tarHeader(entry(path)))[0]).toContain(path)
  expect(list(tarHeader(entry('l', { kind: 'symlink', target: Buffer.from(path) })))[0]).toContain(`-> ${path}`)
})

test('a name need not be text', () => {
  expect(list(tarHeader(entry(Buffer.from([0x61, 0xff]))))[0]).toMatch(/ a\\377$/)
})

test('a file may be larger than the old format can express', () => {
  const size = 10 * 1024 ** 3
  const header = tarHeader(entry('large', { size }))
  expect(header.includes(`size=${size}\n`)).toBe(true)
})
