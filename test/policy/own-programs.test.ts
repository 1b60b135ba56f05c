/** Tools such as npx put the programs of the project where the server is started first on the search path. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-own-programs-'))
afterAll(() => rmSync(root, { recursive: true }))
const workdir = join(root, 'work')
const programs = join(workdir, 'node_modules/.bin')
for (const directory of [programs, join(workdir, 'sub'), join(root, 'bin')]) mkdirSync(directory, { recursive: true })
for (const path of [join(programs, 'ls'), join(workdir, 'sub/cat'), join(root, 'bin/wc')])
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
symlinkSync(programs, join(root, 'linked'))

const gate = new PermissionGate({ workdir: () => workdir, homes: [], accessOf: () => ({ kind: 'none' }) })

async function decide(
  command: string,
  path: string | null,
  mode: PermissionMode = 'default',
  allow: readonly string[] = [],
) {
  const rules = { mode, confirmation: false, rules: ruleSetOf({ allow: [...allow], ask: [], deny: [] }) }
  await gate.prepare(rules)
  return gate.verdictOn('Bash', { kind: 'command', command, cwd: workdir, path }, rules, false)
}

test.each([
  [programs, 'ls'],
  [join(root, 'linked'), 'timeout 5 ls'],
  ['node_modules/.bin', 'env ls'],
  ['', 'cd sub; cat cat'],
  ['.', 'cd sub; cat cat'],
])(
  'with %s on the search path, a program of the workdir does not run as %s without a question',
  async (path, command) => {
    expect(await decide(command, `/usr/bin:${path}`)).toMatchObject({
      behavior: 'ask',
      reason: expect.stringContaining('which is a program in the workdir'),
    })
    expect(await decide(command, `${path}:/usr/bin`, 'plan')).toMatchObject({ behavior: 'deny' })
    expect(await decide(command, '/usr/bin')).toEqual({ behavior: 'allow' })
  },
)

test('programs of the workdir that have other names, and what a rule allows, stay free', async () => {
  const path = `${programs}:${root}/bin:/usr/bin`
  for (const command of ['cat sub/cat', 'wc sub/cat', 'git status', 'timeout 5 head sub/cat'])
    expect([command, await decide(command, path)]).toEqual([command, { behavior: 'allow' }])
  expect(await decide('ls', path, 'default', ['Bash(ls:*)'])).toEqual({ behavior: 'allow' })
})

test.each([
  'read PATH <<< bin; ls',
  'mapfile PATH < sub/cat; ls',
  'getopts a PATH -a; ls',
  'declare PATH=.; ls',
  'export PATH=bin && ls',
  'unset PATH',
  'readonly NODE_OPTIONS=--inspect; ls',
  'while read PATH; do ls; done < sub/cat',
  'command read PATH <<< bin; ls',
  'typeset LD_PRELOAD=./x.so; ls',
  'export GIT_EXTERNAL_DIFF=./x.sh',
  'export http_proxy=http://127.0.0.1:1',
])('what a builtin sets for other commands is asked about, whatever a rule allows: %s', async (command) => {
  const allow = ['read', 'mapfile', 'getopts', 'declare', 'export', 'unset', 'readonly', 'typeset', 'command', 'ls']
  const rules = allow.map((name) => `Bash(${name}:*)`)
  expect(await decide(command, '/usr/bin', 'default', rules)).toMatchObject({
    behavior: 'ask',
    reason: expect.stringMatching(/it sets (PATH|NODE_OPTIONS|LD_PRELOAD|GIT_EXTERNAL_DIFF|http_proxy)/),
  })
})

test('a builtin that sets a variable of a script, or one that no program reads, needs no more than its rule', async () => {
  const rules = ['Bash(export:*)', 'Bash(read:*)', 'Bash(declare:*)']
  const lines = [
    'export NODE_ENV=test',
    'declare my_files=x; ls',
    'read -r first_line < sub/cat; ls',
    'read < sub/cat; ls',
  ]
  for (const command of lines)
    expect([command, await decide(command, '/usr/bin', 'default', rules)]).toEqual([command, { behavior: 'allow' }])
})

test('a program is not free where it is not known in which directories the shell looks for it', async () => {
  expect(await decide('date', null)).toMatchObject({ behavior: 'ask', reason: expect.stringContaining('not known') })
  expect(await decide('date', null, 'default', ['Bash(date)'])).toEqual({ behavior: 'allow' })
  for (const command of ['echo hi', 'cd sub && pwd'])
    expect([command, await decide(command, null)]).toEqual([command, { behavior: 'allow' }])
})
