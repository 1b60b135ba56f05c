/** Whatever way a denied command is written, it does not run without a question. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { effort } from '../support/patience.ts'
import { decideCommand } from './decisions.ts'

const DENY = ['Bash(rm:*)', 'Bash(git push *)', 'Read(~/.ssh/**)', 'Edit(locked/**)']
const BEHAVIORS = ['allow', 'ask', 'deny']
const DENIED = [
  ['rm', '-rf', 'x'],
  ['git', 'push', 'origin'],
  ['cat', '/home/user/.ssh/id_rsa'],
  ['touch', 'locked/a'],
]

/** Ways to write a word that bash takes as the same word, or that only a variable knows. */
const waysToWrite = (word: string) =>
  fc.oneof(
    fc.constant(word),
    fc.constant(`'${word}'`),
    fc.constant(`"${word}"`),
    fc.constant(word.replaceAll(/./g, (character) => `\\${character}`)),
    fc.constant(`$'${Array.from(word, (character) => `\\x${character.charCodeAt(0).toString(16)}`).join('')}'`),
    fc.nat(word.length).map((at) => `${word.slice(0, at)}""${word.slice(at)}`),
    fc.nat(word.length).map((at) => `"${word.slice(0, at)}"'${word.slice(at)}'`),
    fc.nat(word.length).map((at) => `${word.slice(0, at)}\\\n${word.slice(at)}`),
    fc.nat(word.length).map((at) => `${word.slice(0, at)}$empty${word.slice(at)}`),
    fc.nat(word.length).map((at) => `${word.slice(0, at)}\${empty:-}${word.slice(at)}`),
    fc.nat(word.length).map((at) => `${word.slice(0, at)}$(printf '')${word.slice(at)}`),
    fc.constant(`$(printf %s ${word})`),
    fc.constant(`\`echo ${word}\``),
    fc.constant('$x'),
    fc.constant('"${x}"'),
    fc.constant(`\${x:-${word}}`),
    fc.constant(`{${word},}`),
  )

const gap = fc.constantFrom(' ', '  ', '\t', ' \\\n ', ' $empty ')
const ahead = fc.constantFrom(
  '',
  ' ',
  'ls; ',
  'ls && ',
  'false || ',
  'ls | ',
  '! ',
  'time ',
  'X=1 ',
  'x=1 ',
  '{ ',
  '( ',
  'if true; then ',
  '2>&1 ',
)

const closings: Readonly<Record<string, string>> = { '{ ': '; }', '( ': ' )', 'if true; then ': '; fi' }

/** Wrappers around the whole line; the inner ones are quoted again. */
const wrapper = fc.constantFrom<(line: string) => string>(
  (line) => line,
  (line) => `bash -c ${quote(line)}`,
  (line) => `env X=1 sh -c ${quote(line)}`,
  (line) => `eval ${quote(line)}`,
  (line) => `sudo -u root bash -c ${quote(line)}`,
  (line) => `timeout 5 nohup bash -c ${quote(line)}`,
  (line) => `echo "$(${line}\n)"`,
  (line) => `cat <(${line}\n)`,
  (line) => `f() { ${line}\n}; f`,
  (line) => `trap ${quote(line)} EXIT`,
)

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const rewritten = fc
  .constantFrom(...DENIED)
  .chain((words) =>
    fc.record({
      words: fc.tuple(...words.map(waysToWrite)),
      gaps: fc.array(gap, { minLength: 3, maxLength: 3 }),
      ahead,
    }),
  )
  .map(({ words, gaps, ahead: before }) => {
    const line = words.map((word, at) => (at === 0 ? word : `${gaps[at - 1]}${word}`)).join('')
    return `${before}${line}${closings[before] ?? ''}`
  })
  .chain((line) =>
    fc.array(wrapper, { maxLength: 3 }).map((wrappers) => wrappers.reduce((inner, wrap) => wrap(inner), line)),
  )

test('no rewriting of whitespace, quotes, variables or wrappers turns a denied command into an allowed one', () => {
  fc.assert(
    fc.property(rewritten, fc.constantFrom('bypass', 'default', 'accept_edits' as const), (command, mode) => {
      expect(decideCommand(command, { mode, deny: DENY, allow: ['Bash', 'Read', 'Edit'] }).behavior, command).not.toBe(
        'allow',
      )
    }),
    { numRuns: effort(1500, 30_000) },
  )
})

test('any text at all is decided, in bounded time', () => {
  const pieces = fc.constantFrom(
    ...Array.from('\\\'"`$(){}[]<>|&;# \n~*?!=+-'),
    '$(',
    '<<',
    '<<<',
    '${',
    '((',
    'rm',
    'if',
    'case',
    'x',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60 }), (given) => {
      const { behavior } = decideCommand(given.join(''), { mode: 'bypass', deny: DENY })
      expect(BEHAVIORS).toContain(behavior)
    }),
    { numRuns: effort(1500, 30_000) },
  )
})

test.each(['cp $a/$b ', 'cp */*/* ', 'rm a;', 'cp a/b=c,d@e ', 'a$x'])(
  '500 rules and a long command are compared in bounded time: %j',
  (piece) => {
    const command = `x ${piece.repeat(Math.floor(60_000 / piece.length))}`
    const rules = (rule: (at: number) => string) => Array.from({ length: 250 }, (_, at) => rule(at))
    const deny = [
      ...rules((at) => `Read(${'*/'.repeat(100)}**/x*${at}*y)`),
      ...rules((at) => `Bash(${'a*'.repeat(400)}${at})`),
    ]
    expect(BEHAVIORS).toContain(decideCommand(command, { mode: 'bypass', deny }).behavior)
  },
)

test.each([
  '$(',
  '`',
  '(',
  '{',
  '"$(',
  '<<a ',
  '$((',
  '${x:-',
  'a;',
  'a|',
  'a ',
  '\\',
  '"',
  'if ',
  'f()',
  'sudo ',
  'env ',
  'xargs ',
  '../',
  '*',
  'a=',
  'sudo bash -c ',
])('a megabyte of %j does not hold up the server', (piece) => {
  for (const length of [1_000_000, 60_000, 3000]) {
    const command = `echo ${piece.repeat(length / piece.length)}`
    expect(BEHAVIORS).toContain(decideCommand(command, { mode: 'bypass', deny: DENY }).behavior)
  }
})
