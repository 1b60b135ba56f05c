/** `link/..` is two directories: the one that holds the link, for bash, and the one above its target, for the kernel. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import type { ToolAccess } from '../../src/policy/tool-access.ts'

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-parents-'))
afterAll(() => rmSync(root, { recursive: true }))
const workdir = join(root, 'work')
for (const directory of ['work/src', 'work/vendor', 'work/sub/deep', 'work/.git', 'outside'])
  mkdirSync(join(root, directory), { recursive: true })
writeFileSync(join(root, 'outside/secret'), 'x')
writeFileSync(join(workdir, '.git/config'), '')
writeFileSync(join(workdir, 'vendor/--files0-from=.list'), '')
const LINKS = {
  'vendor/link': '../src',
  'vendor/secret': '../../outside/secret',
  'vendor/settings': '../.git/config',
  up: 'sub/deep',
}
for (const [path, target] of Object.entries(LINKS)) symlinkSync(target, join(workdir, path))

const gate = new PermissionGate({ workdir: () => workdir, homes: [], accessOf: () => ({ kind: 'none' }) })

async function decide(access: ToolAccess, mode: PermissionMode, deny: readonly string[] = []) {
  const rules = { mode, confirmation: false, rules: ruleSetOf({ allow: [], ask: [], deny: [...deny] }) }
  await gate.prepare(rules)
  return gate.verdictOn('', access, rules, false).behavior
}

const command = (text: string) => ({ kind: 'command', command: text, cwd: workdir }) as const

test('git is not free in a directory that holds a link into the workdir', async () => {
  expect(await decide(command('cd src/.. && git status'), 'plan')).toBe('allow')
  // The repository of `vendor` may have a configuration that runs a program.
  expect(await decide(command('cd vendor/link/.. && git status'), 'plan')).toBe('deny')
})

test('names of files that are options are looked for in both directories', async () => {
  expect(await decide(command('cd up/.. && wc *'), 'default')).toBe('allow')
  expect(await decide(command('cd vendor/link/.. && wc *'), 'default')).toBe('ask')
})

test('a rule that denies a file holds for both', async () => {
  const deny = [`Read(/${root}/outside/**)`]
  expect(await decide(command('cd vendor && cat secret'), 'bypass', deny)).toBe('deny')
  expect(await decide(command('cd vendor/link/.. && cat secret'), 'bypass', deny)).toBe('deny')
})

test('an edit of a file that other programs obey needs a decision by both', async () => {
  expect(await decide(command('cd vendor/link/.. && echo x > settings'), 'accept_edits')).toBe('ask')
  expect(await decide({ kind: 'edit', paths: ['vendor/link/../settings'] }, 'accept_edits')).toBe('ask')
  expect(await decide({ kind: 'edit', paths: ['up/../new'] }, 'accept_edits')).toBe('allow')
})
