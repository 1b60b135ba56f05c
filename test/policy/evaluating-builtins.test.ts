import * as parser from 'unbash'
import { describe, expect, test } from 'vitest'
import { isSetByBash, maySet, readEvaluating } from '../../src/policy/shell/evaluating-builtins.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'
import { literalWord, UNKNOWN_WORD } from '../../src/policy/shell/shell-word.ts'
import { PLAIN } from '../../src/policy/shell/unwrapped.ts'

const wordsOf = (line: string) => line.split(' ').map((word) => (word === '?' ? UNKNOWN_WORD : literalWord(word)))

const mayCallSet = (line: string, variable: string): boolean => maySet(wordsOf(line), variable)

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

test.each(['_', 'REPLY', 'MAPFILE', 'OPTARG', 'PWD', 'OLDPWD', 'COPROC_PID', 'BASH_REMATCH'])(
  'bash sets %s by itself, so that a command line is not free where it evaluates what that gets',
  (variable) => {
    expect(isSetByBash(variable)).toBe(true)
    const context = { parser, cwd: '/work', homes: [], evaluates: [variable] }
    expect(readCommandLine("echo 'a[$(date)]'", context).hidden).toContain(variable)
    expect(readCommandLine("echo 'a[$(date)]'", { ...context, evaluates: ['count'] }).hidden).toBeUndefined()
  },
)

/** Of each builtin that may evaluate a text: calls that certainly do not, and others. */
const CALLS: Readonly<Record<string, readonly [plain: string, others: string]>> = {
  let: ['', 'x=1,?'],
  compgen: ['', '-c,a'],
  bind: ['', '-x,a'],
  complete: ['', '-C'],
  enable: ['', '-f'],
  fc: ['', '-l'],
  hash: ['', '-p,ls'],
  declare: ['x,x=1,-g,-x,-pfF', '-i,-a,-n,-gi,x=(,x=(a),PS1=x,?,x[1]=a'],
  typeset: ['x,x=1,-r', '-i,x=(,SECONDS=1'],
  local: ['x,x=1,-p', '-n,x=(,ENV=a'],
  export: ['x,x=1,-x,x=(', '-i,BASH_ENV=a,?'],
  readonly: ['x,x=1,-p,x=(', '-a,UID=1,?'],
  read: ['x,-r', 'x[1],-ax,RANDOM,?'],
  unset: ['x,-v', 'x[1],OPTIND,?'],
  getopts: ['ab', 'x[1],PS4'],
  wait: ['1', '-p,x[1]'],
  mapfile: ['x,-t', '-C,-tC,x[1]'],
  readarray: ['x,-t', '-C,MAILPATH'],
  jobs: ['-l,-n,-p,-r,-s,-lp,%1,%,%?x', '-,-x,-lx,x-l,1,x,x%1,?'],
  printf: ['%s,%d,%%n,x', '-v,%n,%5n,%ln'],
  test: ['a,-f', '-v,-R,?'],
  '[': ['],a', '-v,?'],
}

describe.each(Object.entries(CALLS))('%s', (name, [plain, others]) => {
  test.each(plain.split(',').filter(Boolean))('evaluates nothing with %s', (word) => {
    expect(readEvaluating(name, wordsOf(word))).toBe(PLAIN)
  })

  test.each(others.split(',').filter(Boolean))('may evaluate a text with %s', (word) => {
    expect(readEvaluating(name, wordsOf(word))?.hidden).toBe('it evaluates a text, which may run commands')
  })
})

test('builtins without arguments evaluate nothing, and a command of another name is not one of them', () => {
  for (const name of Object.keys(CALLS)) expect(readEvaluating(name, []), name).toBe(PLAIN)
  for (const name of ['ls', 'lets', 'job', '']) expect(readEvaluating(name, wordsOf('-x'))).toBeUndefined()
})

test.each([
  ['[ a ]', false],
  ['[ ? = a ]', true],
  ['[ a = b ]', false],
  ['[ -f a -a -f b ]', false],
  ['[ -v x ]', true],
  ['[ -f a -a -R x ]', true],
  ['test a = b', false],
  ['test ! -f a', false],
  ['printf %%%%n', false],
  ['printf %%n%n', true],
  ['printf %%', false],
  ['export BASH_FUNC_=1', true],
  ['export PROMPT_COMMAND=x', true],
])('whether %s may evaluate a text is %s', (line, expected) => {
  const [name = '', ...words] = line.split(' ')
  expect(readEvaluating(name, wordsOf(words.join(' ')))?.hidden !== undefined).toBe(expected)
})

test('one unknown word among several of a comparison may be an operator', () => {
  const unknown = { pieces: [{ hole: 'any' as const }], isMany: false, hasTilde: false }
  const isEvaluating = (...words: readonly (string | undefined)[]) =>
    readEvaluating(
      'test',
      words.map((word) => (word === undefined ? unknown : literalWord(word))),
    ) !== PLAIN
  expect(isEvaluating(undefined)).toBe(false)
  expect(isEvaluating(undefined, 'a')).toBe(true)
  expect(isEvaluating('-f', undefined)).toBe(false)
  expect(isEvaluating('a', undefined, 'b')).toBe(true)
  expect(isEvaluating(undefined, '=', 'b')).toBe(false)
  expect(isEvaluating('!', 'a', '=', undefined)).toBe(true)
})
