/** Which commands `find`, `xargs` and launchers run, as far as it is known: `<any>` stands for what is found meanwhile. */
import * as parser from 'unbash'
import { expect, test } from 'vitest'
import { unwrapFind, unwrapXargs } from '../../src/policy/shell/found-arguments.ts'
import { unwrapLauncher } from '../../src/policy/shell/launchers.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'
import type { ShellWord } from '../../src/policy/shell/shell-word.ts'
import type { UnwrappedCommand } from '../../src/policy/shell/unwrapped.ts'

const wordsOf = (line: string): readonly ShellWord[] =>
  readCommandLine(line, { parser, cwd: '/work', homes: ['/home/user'] }).commands[0]?.words.slice(1) ?? []

const textOf = ({ pieces }: ShellWord): string =>
  pieces.map((piece) => ('text' in piece ? piece.text : `<${piece.hole}>`)).join('')

const runsOf = ({ runs }: UnwrappedCommand): string[] =>
  runs.map((run) => {
    const text = 'script' in run ? `script: ${run.script}` : run.words.map(textOf).join(' ')
    return run.elsewhere ? `${text} (elsewhere)` : text
  })

const UNKNOWN = 'an unknown argument of find may run a command'

test.each<[string, readonly string[], string?]>([
  [String.raw`find . -exec cat {} \;`, ['cat <any> <any>']],
  ['find . -exec cat a +', ['cat a <any>']],
  ['find . -exec cat a', ['cat a <any>']],
  [String.raw`find . -exec cat b{c d} c \;`, ['cat <any> <any> c <any>']],
  [String.raw`find . -exec cat a$x "b$y" \;`, ['cat <any> <any> <any>']],
  [String.raw`find . -exec cat a \; -ok rm {}a \; -print`, ['cat a <any>', 'rm <any> <any>']],
  [String.raw`find . -execdir cat b + -okdir cat c \;`, ['cat b <any> (elsewhere)', 'cat c <any> (elsewhere)']],
  ['fd . -x cat a', ['cat a <any> (elsewhere)']],
  ['fd . -X cat', ['cat <any> (elsewhere)']],
  ['fd . --exec cat a', ['cat a <any> (elsewhere)']],
  ['fd . --exec-batch cat', ['cat <any> (elsewhere)']],
  ['find . -name x-exec -path --exec=cat y', []],
  ['find . a"$x"', []],
  ['find . a$x', [], UNKNOWN],
  ['find . $x', [], UNKNOWN],
  ['find . "$x"', [], UNKNOWN],
  ['find . "-name$x"', [], UNKNOWN],
  [String.raw`find . -exec cat a \; $x`, ['cat a <any>'], UNKNOWN],
])('%s runs %j', (line, runs, hidden) => {
  const found = unwrapFind(wordsOf(line))
  expect([runsOf(found), found.hidden, found.kind]).toEqual([
    runs,
    hidden,
    runs.length > 0 && hidden === undefined ? 'also' : undefined,
  ])
})

test.each<[string, readonly string[]]>([
  ['xargs', []],
  ['xargs -0', []],
  ['xargs cat a', ['cat a <any>']],
  ['xargs -0rt cat', ['cat <any>']],
  ['xargs -n 1 cat', ['cat <any>']],
  ['xargs -n1 -P 4 cat', ['cat <any>']],
  ['xargs --null --max-args 3 cat a', ['cat a <any>']],
  ['xargs --max-lines=3 --verbose cat a', ['cat a <any>']],
  ['xargs -I% cat a%b % c', ['cat <any> <any> c']],
  ['xargs -I % cat a%b % c', ['cat <any> <any> c']],
  ['xargs -I % %x a', ['<any> a']],
  ['xargs --replace=Q cat aQ {} b', ['cat <any> <any> b']],
  ['xargs --replace cat {} b', ['cat <any> b']],
  ['xargs -I{} -Ia head b "$x"', ['<any> b <any>']],
])('%s runs %j', (line, runs) => {
  const found = unwrapXargs(wordsOf(line))
  expect([runsOf(found), found.hidden, found.kind]).toEqual([runs, undefined, runs.length > 0 ? 'constant' : undefined])
})

test.each(['-i', '--unknown', '-Z 1', '"$x"'])('xargs %s may run each word after it, and something else', (option) => {
  const found = unwrapXargs(wordsOf(`xargs ${option} cat a`))
  expect(runsOf(found)).toEqual(expect.arrayContaining(['cat a (elsewhere)', 'a (elsewhere)']))
  expect([found.kind, found.hidden]).toEqual(['launcher', 'the options of xargs are not known'])
})

test.each<[string, readonly string[]]>([
  ['sudo a b', ['a b', 'b']],
  ['sudo -u a', ['a']],
  ['sudo ./ .. / . ./../', []],
  ['sudo ./a', ['./a']],
  ['sudo a.', ['a.']],
  ['sudo a/', ['a/']],
  ['sudo "a b"', ['script: a b']],
  ['sudo "a;b" "a|b" "a&b"', ['script: a;b', 'script: a|b', 'script: a&b']],
  ['sudo "x=a b"', ['script: x=a b', 'script: a b']],
  ['sudo --run=a -x=b', ['script: a', 'script: b']],
  ['sudo --run', []],
  ['sudo a "$x"', ['a <any>', '<any>']],
  ['sudo -C a', ['a (elsewhere)']],
  ['sudo -D a', ['a (elsewhere)']],
  ['sudo -w a', ['a (elsewhere)']],
  ['sudo --chdir=x a', ['script: x (elsewhere)', 'a (elsewhere)']],
  ['sudo --cwd a', ['a (elsewhere)']],
  ['sudo --root a', ['a (elsewhere)']],
  ['unknown a', ['a (elsewhere)']],
])('%s may run %j', (line, runs) => {
  const name = line.slice(0, line.indexOf(' '))
  const found = unwrapLauncher(wordsOf(line), name)
  expect([runsOf(found), found.hidden, found.kind]).toEqual([runs, undefined, 'launcher'])
})
