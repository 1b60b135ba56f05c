/** How much one decision of the gate may take: steps and look-ups are counted, not milliseconds. */
import * as parser from 'unbash'
import { expect, test } from 'vitest'
import { decide } from '../../src/policy/decide.ts'
import type { GateRules } from '../../src/policy/rules/gate-rules.ts'
import { Places } from '../../src/policy/places.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { allCommands } from '../../src/policy/shell/command-line.ts'
import { readCommandLine } from '../../src/policy/shell/read-command-line.ts'
import { sizeOf } from '../../src/policy/shell/shell-word.ts'

const CWD = '/work/project'
const read = (command: string) => readCommandLine(command, { parser, cwd: CWD, homes: ['/home/user'] })

/** With the components that were looked up, and the directories that were listed. */
function decideCounting(command: string, mode: GateRules['mode'], deny: string[] = ['Read(./.env)']) {
  const count = { components: 0, directories: 0, listed: 0 }
  const places = new Places({
    workdir: CWD,
    homes: ['/home/user'],
    realPath: (path) => ((count.components += path.split('/').length), path),
    isDirectory: () => ((count.directories += 1), false),
    holdsLinks: () => ((count.listed += 1), false),
    programOfGit: () => undefined,
  })
  const rules = { mode, confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny }) }
  const question = { tool: 'Bash', action: { kind: 'command' as const, line: read(command) }, places }
  return { ...count, decision: decide(question, rules, { approved: false }) }
}

const fill = (piece: string): string => piece.repeat(Math.floor(60_000 / piece.length))
const number = (count: number, piece: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => piece(at)).join('')

const TOO_MUCH: readonly (readonly [string, string])[] = [
  ['words', `cat ${fill('a ')}`],
  ['arguments of a launcher', `sudo ${fill('a ')}`],
  ['launchers', fill('sudo ')],
  ['parts of one word', `cat ${fill('*a')}`],
  ['redirections', `cat ${fill('<a ')}`],
  ['commands', fill('cat a;')],
  ['commands with many words', `cat ${'a '.repeat(100)};`.repeat(200)],
  ['long guesses of a launcher', `sudo ${'a '.repeat(50)}${'b'.repeat(50_000)}`],
  ['nested substitutions', `${'"$('.repeat(100)}${fill('x ')}${')"'.repeat(100)}`],
]

test.each(TOO_MUCH)(
  'a command line with too many %s is not understood, and looked into up to a bound only',
  (_, command) => {
    const { commands, redirections, hidden } = read(command)
    const words = [...allCommands(commands)].flatMap((each) => each.words)
    expect(hidden).toBeDefined()
    expect(words.length + redirections.length).toBeLessThanOrEqual(2000)
    expect(sizeOf(words)).toBeLessThanOrEqual(300_000)
  },
)

test.each(TOO_MUCH)(
  'a command line with too many %s needs a permission, and does not run in plan and deny',
  (_, command) => {
    expect(decideCounting(command, 'bypass').decision.behavior).toBe('ask')
    expect(decideCounting(command, 'default').decision.behavior).toBe('ask')
    for (const mode of ['plan', 'deny'] as const) {
      const { decision } = decideCounting(command, mode)
      expect(decision).toMatchObject({
        behavior: 'deny',
        reason: expect.stringMatching(/cannot be decided by rules|is not certain/),
      })
    }
  },
)

test('a command line of many words, files and substitutions that people write is understood', () => {
  const line = `git add ${number(500, (at) => `src/some/directory/file-${at}.ts `)} && echo ${'"$(date)" '.repeat(100)} > log`
  expect(read(line).hidden).toBeUndefined()
  expect(
    read(`cat > file <<'END'\n${fill('a line of text with $(this) in it\n').slice(0, 15_000)}\nEND`).hidden,
  ).toBeUndefined()
})

test.each([
  ['paths', `cat ${number(2000, (at) => `/a/b/c${at} `)}`],
  ['components', `cat ${number(10, (at) => `${'/tmp/..'.repeat(500)}/x${at} `)}`],
  ['globs in directories', `cat ${number(1000, (at) => `/usr/d${at}/* `)}`],
  ['operands that may be directories', `diff ${number(1900, (at) => `a${at} `)}`],
  ['directories where it may run', `${number(14, (at) => `cd d${at};`)} cat ${number(1900, (at) => `a${at} `)}`],
])('the look-ups for one decision are bounded: %s', (_, command) => {
  for (const mode of ['bypass', 'default', 'plan'] as const) {
    const { components, directories, listed, decision } = decideCounting(command, mode)
    expect(components).toBeLessThanOrEqual(4000)
    expect(directories).toBeLessThan(5000)
    expect(listed).toBeLessThanOrEqual(10)
    expect(decision.behavior).not.toBe('allow')
  }
})

test('what is too long to be compared with all rules does not run in plan, although it only reads', () => {
  const deny = Array.from({ length: 500 }, (_, at) => `Read(./a/**/b${at}*c)`)
  const { decision } = decideCounting(`cat ${number(300, (at) => `a/b/c${at} `)}`, 'plan', deny)
  expect(decision).toMatchObject({ behavior: 'deny', reason: expect.stringContaining('too long to be compared') })
})

test('a hundred files are compared with two hundred rules within the bound', () => {
  const paths = number(100, (at) => `src/some/directory/file-${at}.ts `)
  const deny = Array.from({ length: 200 }, (_, at) => `Read(./secret-${at}/**)`)
  expect(decideCounting(`cat ${paths}`, 'default', deny).decision.behavior).toBe('allow')
})

test('a command is read equally often, however many commands a line has and however many rules there are', () => {
  const readsOf = (commands: number, rules: number) => {
    let reads = 0
    const line = read('ls a; cd b; git status; '.repeat(commands / 3))
    const counted = line.commands.map((command) => ({
      ...command,
      get words() {
        return (reads++, command.words)
      },
    }))
    const places = new Places({
      workdir: CWD,
      homes: ['/home/user'],
      realPath: (path) => path,
      isDirectory: () => false,
      holdsLinks: () => false,
      programOfGit: () => undefined,
    })
    const deny = Array.from({ length: rules }, (_, at) => `Read(./secret-${at}/**)`)
    const action = { kind: 'command' as const, line: { ...line, commands: counted } }
    const given = { mode: 'bypass' as const, confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny }) }
    decide({ tool: 'Bash', action, places }, given, { approved: false })
    return reads / commands
  }
  const few = readsOf(30, 10)
  expect(few).toBeGreaterThan(0)
  expect(readsOf(60, 10)).toBe(few)
  expect(readsOf(30, 100)).toBe(few)
})

test.each([
  ['words', 'Bash(rm:*)', (count: number) => `python3 -c "${'a '.repeat(count - 1)}"`, 1999],
  ['words behind a mark', 'Bash(rm:*)', (count: number) => `python3 "(${'a '.repeat(count)}"`, 1999],
  [
    'words with the name of a denied command',
    'Bash(rm x)',
    (count: number) => `python3 -c "${'rm y;'.repeat(count)}"`,
    20,
  ],
  ['names of files', 'Read(./.env)', (count: number) => `python3 -c "${'a.b;'.repeat(count)}"`, 300],
] as const)('the arguments of an unknown program are compared up to a number of %s', (_, deny, command, most) => {
  expect(decideCounting(command(most), 'bypass', [deny]).decision.behavior).toBe('allow')
  expect(decideCounting(command(most + 1), 'bypass', [deny]).decision.behavior).toBe('ask')
})

test('a path is looked up only if all of its components are within the bound, and a longer one never', () => {
  const lookedUp: string[] = []
  const places = new Places({
    workdir: CWD,
    homes: [],
    realPath: (path) => (lookedUp.push(path), path),
    isDirectory: () => false,
    holdsLinks: () => false,
    programOfGit: () => undefined,
  })
  const pathOf = (at: number, components: number) => `${CWD}/d${at}${'/a'.repeat(components - 4)}`
  expect(places.isDirectoryInside([pathOf(0, 101)])).toBe(false)
  expect(lookedUp).toEqual([CWD])
  // That of the workdir has 3, so that 57 others of 70 are within 4000.
  const paths = Array.from({ length: 60 }, (_, at) => pathOf(at, 70))
  expect(paths.filter((path) => places.isDirectoryInside([path]))).toEqual(paths.slice(0, 57))
  expect(lookedUp).toHaveLength(58)
})
