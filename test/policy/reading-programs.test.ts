/** What each program that only reads may be given without a question, for all of them in one table. */
import { expect, test } from 'vitest'
import type { Given } from './decisions.ts'
import { decideCommand } from './decisions.ts'

const OUTSIDE: Given = { cwd: '/etc' }
const LINKED: Given = { links: { '/work/project/src/link': '/etc' } }

/** In the order of the columns of the table. */
const ARGUMENTS: readonly (readonly [words: string, given: Given])[] = [
  ['', OUTSIDE],
  ['/work/project/a', OUTSIDE],
  ['/etc/a', {}],
  ['a b', {}],
  ['a b c', {}],
  ['-- a', {}],
  ['-', {}],
  ['a*', {}],
  ['*', {}],
  ['$x', {}],
  ['a$x', {}],
  ['@a', {}],
  ['src', LINKED],
  ['src/*', LINKED],
]

/** `+` needs no question. */
const TABLE: Readonly<Record<string, string>> = {
  '++++++++++++++': 'echo command_-v',
  '++++++++---+++': ': basename dirname false id seq sleep tr true type which',
  '+++++------++-': 'printf',
  '+++++++----++-': '[',
  '++-++++----++-':
    'cat cd cksum cmp comm cut df expand file fold head join md5sum nl od paste readlink realpath rev sha1sum sha256sum ' +
    'sha512sum sort tac tail test_-f',
  '++-++++-----+-': 'strings',
  '++-++++----+--': 'diff',
  '++-++++++--+++': 'stat wc',
  '---++++++--+++': 'du ls',
  '---++++----++-': 'egrep fgrep find grep rg tree',
  '+-------------': 'date nproc pwd uname whoami',
}

test('what a program reads decides on its arguments, and a program that reads where it runs asks elsewhere', () => {
  const programs = Object.values(TABLE).flatMap((names) => names.split(' '))
  const answersOf = (program: string) =>
    ARGUMENTS.map(([words, given]) => {
      const { behavior } = decideCommand(`${program.replace('_', ' ')} ${words}`, given)
      return behavior === 'allow' ? '+' : '-'
    }).join('')
  const found = Map.groupBy(programs, answersOf)
  expect(Object.fromEntries([...found].map(([answers, names]) => [answers, names.join(' ')]))).toEqual(TABLE)
})
