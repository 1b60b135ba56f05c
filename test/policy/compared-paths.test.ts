/** What comparing costs, and that what is not compared allows nothing. */
import { expect, test } from 'vitest'
import { Effort } from '../../src/policy/rules/comparison.ts'
import { canMeet, coversAll, STAR } from '../../src/policy/rules/globs.ts'
import { hashInput } from '../../src/policy/rules/input-hash.ts'
import type { PathParts } from '../../src/policy/rules/path-pattern.ts'
import { matchPath, parsePathPattern, partsOf } from '../../src/policy/rules/path-pattern.ts'

class CountedEffort extends Effort {
  spent = 0

  override spend(steps: number): boolean {
    this.spent += steps
    return super.spend(steps)
  }
}

function compare(text: string, path: PathParts) {
  const pattern = parsePathPattern(text)
  if (typeof pattern === 'string') throw new TypeError(pattern)
  const effort = new CountedEffort()
  const matched = matchPath(pattern, path, { workdirs: ['/w'], homes: ['/h'] }, effort)
  return { ...matched, spent: effort.spent }
}

test.each([
  ['//a/b', '/a/b', 'yes', false],
  ['//a/b', '/a/b/c', 'yes', false],
  ['//a/b', '/a', 'no', true],
  ['//a/b', '/', 'no', true],
  ['//a/b', '/a/c', 'no', false],
  ['//a/**/b', '/a/c', 'no', true],
  ['//a/**/b', '/a/c/d/b', 'yes', true],
  ['b', '/w/b', 'yes', false],
  ['b', '/h/b', 'no', false],
  ['~/b', '/h/b', 'yes', false],
  ['~/b', '/h', 'no', true],
] as const)('the pattern %s matches the path %s: %s; and it is above a match: %s', (pattern, path, match, isAbove) => {
  const matched = compare(pattern, partsOf(path))
  expect(matched.match).toBe(match)
  if (match === 'no') expect(matched.isAbove).toBe(isAbove)
})

test('a path with a part that is not known may match all that begins as it does', () => {
  expect(compare('//a/b/c', [['a'], undefined])).toMatchObject({ match: 'maybe' })
  expect(compare('//a/b/c', [['x'], undefined]).match).toBe('no')
  expect(compare('//a/b', [['a'], [STAR]]).match).toBe('maybe')
  expect(compare('//a/.b', [['a'], [STAR]]).match).toBe('no')
})

test('a name of a pattern costs the same for a long path, and two asterisks cost what they reach', () => {
  const more = (pattern: string) => compare(pattern, partsOf('/a/b/c')).spent - compare(pattern, partsOf('/a')).spent
  expect(more('//a')).toBe(2)
  expect(more('//**')).toBe(4)
})

test('without effort left nothing is certainly matched, and everything may match', () => {
  const effort = new Effort()
  expect(coversAll(['a'], ['a'], effort)).toBe(true)
  while (!effort.isSpent) effort.spend(1_000_000)
  expect(coversAll(['a'], ['a'], effort)).toBe(false)
  expect(canMeet(['a'], ['b'], effort)).toBe(true)
})

test('an input is read once for its hash, and has another one under another name', () => {
  let reads = 0
  const input = {
    get command() {
      return (reads++, 'ls')
    },
  }
  const hash = hashInput('Bash', input)
  const readsForOne = reads
  expect(hashInput('Bash', input)).toBe(hash)
  expect(reads).toBe(readsForOne)
  expect(hashInput('Other', input)).not.toBe(hash)
  expect(hashInput('Bash', { command: 'ls' })).toBe(hash)
  expect(hashInput('Bash', { command: 'rm' })).not.toBe(hash)
  expect(new Set(['ls', 'rm', null, undefined].map((value) => hashInput('Bash', value))).size).toBe(4)
})
