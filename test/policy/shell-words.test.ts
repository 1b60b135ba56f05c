/** What is known of the words of a command line, and of the script that a call of a shell runs. */
import * as parser from 'unbash'
import { describe, expect, test } from 'vitest'
import { decideCommand } from './decisions.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'
import { isShell, readShellCall } from '../../src/policy/shell/shell-calls.ts'
import { literalWord } from '../../src/policy/shell/shell-word.ts'

const read = (line: string) => readCommandLine(line, { parser, cwd: '/work', homes: ['/home/user'] })

describe('what a word may stand for', () => {
  const ANY = { hole: 'any' }
  const NAME = { hole: 'name' }
  const PATH = { hole: 'path' }
  test.each<[word: string, pieces: readonly object[]]>([
    ['*', [NAME]],
    ['**', [PATH]],
    ['$x**', [ANY]],
    ['*[a]', [ANY]],
    ['a*', [{ text: 'a' }, NAME]],
    ['"a"b**', [{ text: 'a' }, { text: 'b' }, PATH]],
    ['"a"b$x*', [{ text: 'a' }, { text: 'b' }, ANY]],
    ['$x*', [ANY]],
    ['$x"a"*', [ANY, { text: 'a' }, NAME]],
    ['"$#"', [NAME]],
    ['$#', [NAME]],
    ['$x', [ANY]],
    ['""', [{ text: '' }]],
    ['<(ls)', [{ text: '/dev/fd/63' }]],
  ])('%s', (word, pieces) => {
    expect(read(`cat ${word}`).commands.at(-1)?.words[1]?.pieces).toEqual(pieces)
  })
})

describe('a call of bash', () => {
  const call = (words: string) => readShellCall('bash', words.split(' ').map(literalWord))

  test.each([
    '-c',
    '-lc',
    '-ec',
    ...['login', 'norc', 'noprofile', 'posix', 'noediting', 'restricted', 'verbose'].map((name) => `--${name} -c`),
    '-o pipefail -c',
    '+x -c',
    '-c --',
  ])('runs the text after %s', (options) => {
    expect(call(`${options} ls`)).toEqual({ kind: 'constant', runs: [{ script: 'ls', syntax: 'bash' }], variables: [] })
  })

  test.each([
    '--loginx -c',
    '--xlogin -c',
    '--norc=1 -c',
    '--verbose-x -c',
    '--rcfile x -c',
    '--init-file x -c',
    '--unknown -c',
    '-o unknown -c',
    '-i',
    '-s',
  ])('runs what cannot be seen with %s', (options) => {
    expect(call(`${options} ls`.replace(/^-([is]) ls$/, '-$1')).hidden).toBe(
      'it runs a shell whose commands cannot be seen',
    )
  })

  test.each(['--version', '--help'])('with %s runs nothing', (option) => {
    expect(call(option)).toEqual({ kind: undefined, runs: [], variables: [] })
    expect(call(`${option}x`).hidden).toBeDefined()
  })
})

test('a command line that nests too many commands or scripts is hidden, and its reason says so', () => {
  expect(read(`${'env '.repeat(7)}ls`).hidden).toBeUndefined()
  expect(read(`${'env '.repeat(8)}ls`).hidden).toBe('it nests too many commands')
  expect(read(`${'eval '.repeat(7)}ls`).hidden).toBeUndefined()
  expect(read(`${'eval '.repeat(8)}ls`).hidden).toBe('it nests too many scripts')
})

test.each([
  ['cat **', 'ask'],
  ['cat src/**', 'ask'],
  ['cat **/key', 'ask'],
  ['bash -O globstar -c "cat **"', 'ask'],
  ['cat *', 'allow'],
  ['cat src/*', 'allow'],
])('two asterisks may cross directories, and read no denied file there: for %s the answer is %s', (line, behavior) => {
  const given = { mode: 'bypass', deny: ['Read(./src/a/b/key)'] } as const
  expect(decideCommand(`shopt -s globstar; ${line}`, given).behavior).toBe(behavior)
})

test.each([
  ['*', { isMany: true, hasTilde: false }],
  ['a', { isMany: false, hasTilde: false }],
  ['$x', { isMany: true, hasTilde: false }],
  ['"$x"', { isMany: false, hasTilde: false }],
  ['"$@"', { isMany: true, hasTilde: false }],
  ['~', { isMany: false, hasTilde: true }],
  ['~/a', { isMany: false, hasTilde: true }],
  ['~/*', { isMany: true, hasTilde: true }],
  ['~user/a', { isMany: false, hasTilde: false, pieces: [{ hole: 'any' }] }],
  ['~+/*', { isMany: true, hasTilde: false, pieces: [{ hole: 'any' }] }],
  ['x=~/a', { isMany: false, hasTilde: false, pieces: [{ text: 'x=' }, { hole: 'any' }] }],
  ["$'a'", { isMany: false, hasTilde: false, pieces: [{ text: 'a' }] }],
  ["'a'", { isMany: false, hasTilde: false, pieces: [{ text: 'a' }] }],
])('it is known of the word %s whether it is one word, and in the home directory', (word, expected) => {
  expect(read(`cat -- ${word}`).commands.at(-1)?.words[2]).toMatchObject(expected)
})

test('a text that only another shell can read is hidden, with what it seems to run', () => {
  const call = (name: string) => readShellCall(name, [literalWord('-c'), literalWord('ls')])
  for (const [name, syntax] of [
    ['bash', 'bash'],
    ['rbash', 'bash'],
    ['sh', 'posix'],
    ['dash', 'posix'],
    ['ash', 'posix'],
  ])
    expect(call(name ?? '')).toEqual({ kind: 'constant', runs: [{ script: 'ls', syntax }], variables: [] })
  for (const name of ['zsh', 'ksh', 'mksh', 'fish', 'csh', 'tcsh', 'pwsh'])
    expect(call(name)).toMatchObject({
      kind: 'constant',
      runs: [{ script: 'ls' }],
      hidden: `only ${name} knows how it reads a text`,
    })
})

test('the shells are known by their whole names', () => {
  const shells = 'bash rbash sh dash ash zsh ksh mksh fish csh tcsh pwsh'.split(' ')
  for (const name of shells) expect(isShell(name), name).toBe(true)
  for (const name of ['ls', 'bash2', 'xsh', 'toString', '']) expect(isShell(name), name).toBe(false)
})
