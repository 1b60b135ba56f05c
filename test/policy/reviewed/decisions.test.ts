/**
 * The decisions on many command lines, as they were reviewed: a change of the policy shows here what it changes. Write
 * them again with `vitest run -u test/policy/reviewed`, and review each line that differs.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Given } from '../decisions.ts'
import { faultsOf } from '../../../src/policy/rules/rule-set.ts'
import { decideAccess, decideCommand, signOf } from '../decisions.ts'
import { ATTACKS, DENIED, INCLUDED, TRACKED } from '../denied-attacks.ts'
import { EVALUATED } from '../differential/constructs.ts'
import { EVERYDAY } from '../everyday-commands.ts'
import { TRICKED, TRICKS } from '../shell-tricks.ts'
import { CONSTRUCTS } from './lines.ts'
import { COMMANDS, FETCHES, PATHS, TOOLS, WRITTEN } from './rules.ts'
import type { Table } from './tables.ts'
import { ASSIGNED, FILES, GIT, GIT_OPTIONS, SEARCHES, WRAPPERS } from './tables.ts'

const LINKS = { '/work/project/link': '/etc' }
const OF_FILES: readonly Given[] = [
  { mode: 'bypass', deny: ['Read(./.env)'] },
  { mode: 'bypass', deny: ['Edit(./.env)'] },
]
const OF_PROGRAMS: readonly Given[] = [{}, { mode: 'bypass', deny: ['Bash(evil:*)'] }, { allow: ['Bash(evil:*)'] }]
const OF_LINES: readonly Given[] = [
  {},
  { ...TRICKED, links: LINKS },
  { mode: 'plan' },
  { mode: 'accept_edits', links: LINKS },
  { isStrangers: true },
  { mode: 'bypass', deny: DENIED },
  { mode: 'bypass', deny: ['Edit(./.env)', 'Edit(src/**)'] },
  { mode: 'bypass', ask: ['Read'], deny: ['Edit'] },
  { mode: 'bypass', deny: ['Read(~/**)', 'Bash(rm:*)'], cwd: '/work/project/src' },
]

const signsOf = (command: string, all: readonly Given[]): string =>
  all.map((given) => signOf(decideCommand(command, given))).join('')

/** A line for each row, with the signs of all columns in their order. */
function tableOf(rows: readonly string[], columns: readonly string[], cell: (row: string, column: string) => string) {
  const lines = rows.map((row) => `${columns.map((column) => cell(row, column)).join(' ')} ${row}`)
  return [...columns.map((column, at) => `${at} ${column}`), ...lines, ''].join('\n')
}

const callsOf = ({ programs, calls }: Table, all: readonly Given[], space = ' '): string =>
  tableOf(programs, calls, (program, call) => signsOf(`${program}${space}${call}`, all))

function listOf(commands: readonly string[]): string {
  const shown = commands.map((command) => {
    const decision = decideCommand(command)
    const [name = ''] = command.split(' ')
    const own = [{ allow: [`Bash(${command})`] }, { allow: [`Bash(${name}:*)`] }].filter(
      ({ allow }) => faultsOf({ allow, ask: [], deny: [] }).length === 0,
    )
    const said = decision.behavior === 'allow' ? [] : [decision.reason]
    const rules = decision.behavior === 'ask' ? (decision.rules ?? []) : []
    return [signsOf(command, [...OF_LINES, ...own]), JSON.stringify(command), ...said, ...rules].join('  ')
  })
  return `${shown.join('\n')}\n`
}

const expectReviewed = (text: string, name: string): Promise<void> =>
  expect(text).toMatchFileSnapshot(join(import.meta.dirname, `${name}.txt`))

describe('decided as it was reviewed is', () => {
  test('which files a call of git shows and changes', async () => {
    await expectReviewed(callsOf(GIT, OF_FILES), 'git')
    await expectReviewed(callsOf(GIT_OPTIONS, OF_FILES), 'git-options')
  })

  test('which files a program reads and changes', async () => {
    await expectReviewed(callsOf(FILES, OF_FILES), 'files')
  })

  test('which files a search reads', async () => {
    await expectReviewed(callsOf(SEARCHES, OF_FILES.slice(0, 1)), 'searches')
  })

  test('which command another one runs', async () => {
    await expectReviewed(callsOf(WRAPPERS, OF_PROGRAMS), 'wrappers')
    await expectReviewed(callsOf(ASSIGNED, OF_PROGRAMS, ''), 'assigned')
  })

  test('what everyday commands, tricks and attacks need', async () => {
    const all = [...EVERYDAY, ...Object.values(TRICKS).flat(), ...ATTACKS, ...TRACKED, ...INCLUDED]
    await expectReviewed(listOf([...new Set(all)].filter(({ length }) => length < 300)), 'lines')
  })

  test('what each construct of the shell needs', async () => {
    await expectReviewed(listOf([...new Set([...CONSTRUCTS, ...Object.values(EVALUATED)])]), 'constructs')
  })

  test('what a rule may say', async () => {
    const shown = WRITTEN.map((rule) => {
      const faults = [{ allow: [rule] }, { deny: [rule] }].map((lists) =>
        faultsOf({ allow: [], ask: [], deny: [], ...lists }),
      )
      return JSON.stringify([rule, ...faults])
    })
    await expectReviewed(`${shown.join('\n')}\n`, 'rules')
  })

  test('which calls a rule is about', async () => {
    const ofPath = (rule: string, path: string) => {
      const deep = decideAccess('Tool', { kind: 'read', paths: [path], isDeep: true }, { mode: 'bypass', deny: [rule] })
      const others = (['read', 'edit'] as const).flatMap((kind) => [
        decideAccess('Tool', { kind, paths: [path] }, { mode: 'bypass', deny: [rule] }),
        decideAccess(
          'Tool',
          { kind, paths: [path] },
          { allow: [rule.replace('Read', kind === 'read' ? 'Read' : 'Edit')] },
        ),
      ])
      return [deep, ...others].map(signOf).join('')
    }
    await expectReviewed(tableOf(PATHS.rules, PATHS.paths, ofPath), 'rules-of-paths')
    const both = (rule: string) => [{ mode: 'bypass' as const, deny: [rule] }, { allow: [rule] }]
    const ofLine = (rule: string, line: string) => signsOf(line, both(rule))
    await expectReviewed(tableOf(PATHS.rules, PATHS.words, ofLine), 'rules-of-words')
    await expectReviewed(tableOf(COMMANDS.rules, COMMANDS.commands, ofLine), 'rules-of-commands')
    const ofUrl = (rule: string, url: string) =>
      both(rule)
        .map((given) => signOf(decideAccess('WebFetch', { kind: 'fetch', url }, given)))
        .join('')
    await expectReviewed(tableOf(FETCHES.rules, FETCHES.urls, ofUrl), 'rules-of-urls')
    const ofTool = (rule: string, tool: string) =>
      both(rule)
        .filter((given) => faultsOf({ allow: [], ask: [], deny: [], ...given }).length === 0)
        .map((given) => signOf(decideAccess(tool, { kind: 'other' }, given)))
        .join('')
    await expectReviewed(tableOf(TOOLS.rules, TOOLS.tools, ofTool), 'rules-of-tools')
  })
})
