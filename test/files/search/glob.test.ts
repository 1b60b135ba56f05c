import { describe, expect, test } from 'vitest'
import { compileGlob } from '../../../src/files/search/glob.ts'

describe('a pattern', () => {
  test.each([
    ['*.ts', 'a.ts', true],
    ['*.ts', 'deep/in/a.ts', true],
    ['*.ts', 'a.tsx', false],
    ['a*', 'b/a', true],
    ['a*b*c', 'aXbXbc', true],
    ['a*b*c', 'aXcXb', false],
    ['?', 'é', true],
    ['?', '😀', true],
    ['?', 'ab', false],
    ['[a-c]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['[!a-c]x', 'dx', true],
    ['[]]', ']', true],
    ['[a-]', '-', true],
    ['[', '[', true],
    ['[a', '[a', true],
    ['[[', '[[', true],
    ['[]', '[]', true],
    ['[!]', '[!]', true],
    ['[a]]', 'a]', true],
    ['[]a]', 'a', true],
    ['[!]a]', 'b', true],
    ['[!]a]', ']', false],
    ['a.b', 'aXb', false],
    ['$^+()|', '$^+()|', true],
    ['*', '', true],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/in/a.ts', false],
    ['src/**/*.ts', 'src/a.ts', true],
    ['src/**/*.ts', 'src/in/deep/a.ts', true],
    ['**/test/**', 'a/test/b/c', true],
    ['**/test/**', 'a/tests/b', false],
    ['src/**', 'src', false],
    ['src/**', 'src/a/b', true],
    ['**/a', 'a', true],
    ['/a.ts', 'a.ts', true],
    ['/a.ts', 'in/a.ts', false],
  ])('%s and %s: %s', (pattern, path, fits) => {
    expect(compileGlob(pattern)(path)).toBe(fits)
  })

  test('of brackets only is parsed once for all names', () => {
    const matches = compileGlob('['.repeat(999))
    // Parsing it for each of them would take longer than a test may.
    const names = Array.from({ length: 1_000_000 }, (_, at) => `name-${at}`)
    expect(names.filter(matches)).toEqual([])
  })

  test('takes time proportional to its length, whatever it contains', () => {
    expect(compileGlob(`${'*a'.repeat(200)}b`)('a'.repeat(250))).toBe(false)
    expect(compileGlob(`${'**/a/'.repeat(190)}b`)('a/'.repeat(1000))).toBe(false)
  })
})
