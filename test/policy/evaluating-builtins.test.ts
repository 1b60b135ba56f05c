import { expect, test } from 'vitest'
import { maySet } from '../../src/policy/shell/evaluating-builtins.ts'
import { literalWord, UNKNOWN_WORD } from '../../src/policy/shell/shell-word.ts'

const mayCallSet = (line: string, variable: string): boolean =>
  maySet(
    line.split(' ').map((word) => (word === '?' ? UNKNOWN_WORD : literalWord(word))),
    variable,
  )

test.each([
  ['export PATH=x', true],
  ['read -aPATH', true],
  ['local ?', true],
  ['export OTHER=x', false],
  ['export PATHS=x', false],
  ['echo PATH=x', false],
  ['? PATH=x', false],
])('a builtin may set PATH: %s is %s', (line, expected) => {
  expect(mayCallSet(line, 'PATH')).toBe(expected)
})
