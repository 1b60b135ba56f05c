/** A deny rule is not in the way of everyday commands, and none of the ways past it is open: on a real disk. */
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ATTACKS, DENIED, INCLUDED, TRACKED } from './denied-attacks.ts'
import { EVERYDAY } from './everyday-commands.ts'
import { useProjects } from './real-project.ts'

const NAMES = ['.env', '.env.example', 'README.md', 'package.json', 'a', 'b', 'src/a.ts', 'lib/a.ts', 'tests/a.ts']
const FILES = Object.fromEntries(NAMES.map((name) => [name, `x ${name}\n`]))
const makeProject = useProjects()

const plain = await makeProject('project', { ...FILES, '.gitignore': '.env\nnode_modules\n!.env.example\n' })
const tracked = await makeProject('tracked', { ...FILES, '.gitignore': 'node_modules\n' })
const included = await makeProject('included', { ...FILES, '.gitignore': '.env\n', '.ignore': '!.env\n' })
const linked = await makeProject('linked', { ...FILES, '.gitignore': '.env\n' })
symlinkSync('/proc/self/cwd', join(linked.path, 'here'))

const ENV_RULES = [['Read(./.env)'], ['Read(**/.env)'], ['Read(./.env)', 'Read(./secrets/**)', 'Edit(./locked/**)']]

describe('everyday commands', () => {
  test('are at least 200', () => expect(new Set(EVERYDAY).size).toBeGreaterThanOrEqual(200))

  test.each([...ENV_RULES, DENIED].map((rules) => [rules]))('run without a question past the rules %j', (deny) => {
    const stopped = []
    for (const command of EVERYDAY) {
      if (command.startsWith('curl') && deny.length > 5) continue
      const verdict = plain.decide(command, deny)
      if (verdict.behavior !== 'allow') stopped.push([command, verdict.reason])
    }
    expect(stopped).toEqual([])
  })

  test('read what a search looks into only below where it looks', () => {
    const deny = ['Read(./.env)', 'Read(./tests/**)']
    for (const command of ['grep -r x src', 'rg x src', 'rg -. x src', 'cp -r src x', 'tar c src'])
      expect([command, plain.decide(command, deny).behavior]).toEqual([command, 'allow'])
  })
})

describe('no attack runs without a question', () => {
  test('that takes an option out of the name of a file', async () => {
    const project = await makeProject('options', { ...FILES, '.gitignore': '.env\n' })
    symlinkSync('/etc/passwd', join(project.path, 'src/.list'))
    const commands = [
      'cd src && wc *',
      'cd src && wc -l *.list',
      'cd src; du *',
      'wc *',
      'wc src/*',
      'cd src && wc ./*',
    ]
    const decided = () => {
      const found = []
      for (const command of commands) found.push(project.decide(command, [], 'default').behavior)
      return found
    }
    expect(decided()).toEqual(commands.map(() => 'allow'))
    // Its content is shown in an error.
    writeFileSync(join(project.path, 'src/--files0-from=.list'), '')
    expect(decided()).toEqual(['ask', 'ask', 'ask', 'allow', 'allow', 'allow'])
  })

  test.each(['bypass', 'default', 'accept_edits'] as const)('in the mode %s', (mode) => {
    const passed = []
    for (const command of ATTACKS) if (linked.decide(command, DENIED, mode).behavior === 'allow') passed.push(command)
    expect(passed).toEqual([])
  })

  test.each(ENV_RULES.map((rules) => [rules]))('that shows a tracked file, with %j', (deny) => {
    const passed = []
    for (const command of TRACKED) if (tracked.decide(command, deny).behavior === 'allow') passed.push(command)
    expect(passed).toEqual([])
  })

  test.each(ENV_RULES.map((rules) => [rules]))(
    'that searches hidden files because an ignore file says so, with %s',
    (deny) => {
      const passed = []
      for (const command of INCLUDED) if (included.decide(command, deny).behavior === 'allow') passed.push(command)
      expect(passed).toEqual([])
    },
  )
})
