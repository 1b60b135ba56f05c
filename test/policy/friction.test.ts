/** A deny rule is not in the way of everyday commands, and none of the ways past it is open: on a real disk. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { PermissionMode } from '../../src/contract/permission.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { ATTACKS, DENIED, INCLUDED, TRACKED } from './denied-attacks.ts'
import { EVERYDAY } from './everyday-commands.ts'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-friction-'))
afterAll(() => rmSync(root, { recursive: true }))

/** A repository that ignores `.env`, as most do. */
function makeProject(name: string, ignored: string): string {
  const project = join(root, name)
  for (const directory of ['src', 'lib', 'tests']) mkdirSync(join(project, directory), { recursive: true })
  for (const file of ['.env', '.env.example', 'README.md', 'package.json', 'a', 'b', 'src/a.ts', 'lib/a.ts'])
    writeFileSync(join(project, file), `x ${file}\n`)
  writeFileSync(join(project, '.gitignore'), ignored)
  const git = (...words: string[]) => execFileSync('git', words, { cwd: project, env: { ...process.env, HOME: root } })
  git('init', '--quiet')
  git('add', '.')
  return project
}

const plain = makeProject('project', '.env\nnode_modules\n!.env.example\n')
const tracked = makeProject('tracked', 'node_modules\n')
const included = makeProject('included', '.env\n')
writeFileSync(join(included, '.ignore'), '!.env\n')
const linked = makeProject('linked', '.env\n')
symlinkSync('/proc/self/cwd', join(linked, 'here'))

const gates = new Map<string, PermissionGate>()

async function decide(command: string, workdir: string, deny: readonly string[], mode: PermissionMode = 'bypass') {
  const rules = { mode, confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny: [...deny] }) }
  const gate =
    gates.get(workdir) ??
    new PermissionGate({ workdir: () => workdir, homes: [join(root, 'home')], accessOf: () => ({ kind: 'none' }) })
  gates.set(workdir, gate)
  await gate.prepare(rules)
  return gate.verdictOn('Bash', { kind: 'command', command, cwd: workdir }, rules, false)
}

const ENV_RULES = [['Read(./.env)'], ['Read(**/.env)'], ['Read(./.env)', 'Read(./secrets/**)', 'Edit(./locked/**)']]

describe('everyday commands', () => {
  test('are at least 200', () => expect(new Set(EVERYDAY).size).toBeGreaterThanOrEqual(200))

  test.each([...ENV_RULES, DENIED].map((rules) => [rules]))(
    'run without a question past the rules %j',
    async (deny) => {
      const stopped = []
      for (const command of EVERYDAY) {
        if (command.startsWith('curl') && deny.length > 5) continue
        const verdict = await decide(command, plain, deny)
        if (verdict.behavior !== 'allow') stopped.push([command, verdict.reason])
      }
      expect(stopped).toEqual([])
    },
  )

  test('read what a search looks into only below where it looks', async () => {
    const deny = ['Read(./.env)', 'Read(./tests/**)']
    for (const command of ['grep -r x src', 'rg x src', 'rg -. x src', 'cp -r src x', 'tar c src'])
      expect([command, (await decide(command, plain, deny)).behavior]).toEqual([command, 'allow'])
  })
})

describe('no attack runs without a question', () => {
  test('that takes an option out of the name of a file', async () => {
    const project = makeProject('options', '.env\n')
    symlinkSync('/etc/passwd', join(project, 'src/.list'))
    const commands = [
      'cd src && wc *',
      'cd src && wc -l *.list',
      'cd src; du *',
      'wc *',
      'wc src/*',
      'cd src && wc ./*',
    ]
    const decided = async () => {
      const found = []
      for (const command of commands) found.push((await decide(command, project, [], 'default')).behavior)
      return found
    }
    expect(await decided()).toEqual(commands.map(() => 'allow'))
    // Its content is shown in an error.
    writeFileSync(join(project, 'src/--files0-from=.list'), '')
    expect(await decided()).toEqual(['ask', 'ask', 'ask', 'allow', 'allow', 'allow'])
  })

  test.each(['bypass', 'default', 'accept_edits'] as const)('in the mode %s', async (mode) => {
    const passed = []
    for (const command of ATTACKS)
      if ((await decide(command, linked, DENIED, mode)).behavior === 'allow') passed.push(command)
    expect(passed).toEqual([])
  })

  test.each(ENV_RULES.map((rules) => [rules]))('that shows a tracked file, with %j', async (deny) => {
    const passed = []
    for (const command of TRACKED) if ((await decide(command, tracked, deny)).behavior === 'allow') passed.push(command)
    expect(passed).toEqual([])
  })

  test.each(ENV_RULES.map((rules) => [rules]))(
    'that searches hidden files because an ignore file says so, with %s',
    async (deny) => {
      const passed = []
      for (const command of INCLUDED)
        if ((await decide(command, included, deny)).behavior === 'allow') passed.push(command)
      expect(passed).toEqual([])
    },
  )
})
