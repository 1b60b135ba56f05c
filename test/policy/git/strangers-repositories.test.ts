/** The repository of a stranger runs no program through a git that only reads. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as parser from 'unbash'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PermissionRules } from '../../../src/contract/values/permission.ts'
import type { PermissionMode } from '../../../src/contract/values/permission.ts'
import { decide } from '../../../src/policy/decide.ts'
import { PermissionGate } from '../../../src/policy/permissions.ts'
import { Places } from '../../../src/policy/places.ts'
import { ruleSetOf } from '../../../src/policy/rules/rule-set.ts'
import { readCommandLine } from '../../../src/policy/shell/read-command-line.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import type { Change } from './strangers-repositories.ts'
import { createRepository, git, OPEN, RUNNING, SECRET, SHOWING, USUAL, WAITING } from './strangers-repositories.ts'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-git-'))
const plain = join(root, 'plain')
const home = join(root, 'home')
const ran = join(root, 'ran')
const evil = join(root, 'evil')
let count = 0

beforeAll(() => {
  mkdirSync(home)
  writeFileSync(evil, `#!/bin/sh\necho ran >> ${ran}\n`, { mode: 0o755 })
  createRepository(plain)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

const COMMANDS = [
  'git status',
  'git status --short',
  'git diff',
  'git diff --cached',
  'git log -p',
  'git show',
  'git blame a.txt',
  'git ls-files -m',
  'git describe --always --dirty',
] as const

function prepared(change: Change): string {
  count += 1
  const repository = join(root, `${count}/work`)
  cpSync(plain, repository, { recursive: true })
  change(repository, evil)
  return repository
}

async function verdictOn(repository: string, command: string, mode: PermissionMode, allow: readonly string[] = []) {
  const gate = new PermissionGate({ workdir: () => repository, homes: [home], accessOf: () => ({ kind: 'other' }) })
  const rules = { mode, confirmation: false, rules: ruleSetOf(PermissionRules.parse({ allow })) }
  await gate.prepare(rules)
  return gate.verdictOn('Bash', { kind: 'command', command, cwd: repository }, rules, false)
}

function runAll(repository: string): boolean {
  outputOf(repository)
  const hasRun = existsSync(ran)
  rmSync(ran, { force: true })
  return hasRun
}

function outputOf(repository: string): string {
  const env = { PATH: process.env['PATH'], HOME: home, GIT_CONFIG_NOSYSTEM: '1' }
  // What git has not seen yet is looked at again.
  const touched = 'for f in a.txt sub/a.txt; do [ -e "$f" ] && touch -d 2001-01-01 "$f"; done'
  const { output } = spawnSync('bash', ['-c', `${touched}; ${COMMANDS.join('; ')}`], {
    cwd: repository,
    env,
    input: '',
    timeout: PATIENCE_MS / 4,
  })
  return output.join('')
}

describe.each([
  ['which runs it', RUNNING],
  ['which could', WAITING],
  ['which an edit could add', OPEN],
])('git is not free in a repository with a program, %s', (_, changes) => {
  test.each(Object.entries(changes))('%s', async (_name, change) => {
    const repository = prepared(change)
    for (const command of COMMANDS) {
      expect((await verdictOn(repository, command, 'default')).behavior, command).toBe('ask')
      expect((await verdictOn(repository, command, 'plan')).behavior, command).toBe('deny')
    }
    expect((await verdictOn(repository, 'git status', 'deny')).behavior).toBe('deny')
    expect((await verdictOn(repository, 'git status', 'default', ['Bash(git status)'])).behavior).toBe('allow')
    if (changes === RUNNING) expect(runAll(repository)).toBe(true)
  })
})

describe('git is not free in a repository that shows what is outside', () => {
  test.each(Object.entries(SHOWING))('%s', async (_, change) => {
    const repository = prepared(change)
    for (const command of COMMANDS)
      expect((await verdictOn(repository, command, 'default')).behavior, command).toBe('ask')
    expect(outputOf(repository).toLowerCase()).toContain(SECRET.trim())
  })
})

describe('git is free, and runs nothing, in', () => {
  test.each(Object.entries(USUAL))('%s', async (_, change) => {
    const repository = prepared(change)
    for (const command of COMMANDS)
      expect(await verdictOn(repository, command, 'plan'), command).toEqual({ behavior: 'allow' })
    expect(runAll(repository)).toBe(false)
  })
})

test('a repository above the workdir counts', async () => {
  const above = prepared((at) => git(at, 'config', 'core.fsmonitor', evil))
  mkdirSync(join(above, 'below'))
  expect(await verdictOn(join(above, 'below'), 'git status', 'default')).toMatchObject({
    behavior: 'ask',
    reason: expect.stringContaining('a configuration that sets core.fsmonitor, which may run a program') as string,
  })
})

test('a line that starts git often reads the repository once', () => {
  let reads = 0
  const places = new Places({
    workdir: plain,
    homes: [home],
    realPath: (path) => path,
    isDirectory: () => false,
    holdsLinks: () => false,
    programOfGit: () => void (reads += 1),
  })
  const line = readCommandLine('git status; '.repeat(200), { parser, cwd: plain, homes: [] })
  const rules = { mode: 'plan', confirmation: false, rules: ruleSetOf(PermissionRules.parse({})) } as const
  const question = { tool: 'Bash', action: { kind: 'command', line }, places } as const
  expect(decide(question, rules, { approved: false })).toEqual({ behavior: 'allow' })
  expect(reads).toBe(1)
})

test('a pipe in the place of a file of git does not hold up the server', async () => {
  const repository = prepared((at) => {
    rmSync(join(at, '.git/config'))
    spawnSync('mkfifo', [join(at, '.git/config')])
  })
  expect((await verdictOn(repository, 'git status', 'default')).behavior).toBe('ask')
})
