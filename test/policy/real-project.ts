/** Decisions of the gate about a project on a real disk. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll } from 'vitest'
import type { PermissionMode } from '../../src/contract/values/permission.ts'
import type { GateDecision } from '../../src/policy/decide.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'

export type RealProject = {
  readonly path: string
  readonly decide: (command: string, deny: readonly string[], mode?: PermissionMode) => GateDecision
}

/** For the tests of one file: makes projects in a directory that is removed after them. */
export function useProjects(): (name: string, files: Readonly<Record<string, string>>) => Promise<RealProject> {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-project-'))
  afterAll(() => rmSync(root, { recursive: true }))
  const home = join(root, 'home')
  mkdirSync(home)
  return async (name, files) => {
    const path = join(root, name)
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, file)), { recursive: true })
      writeFileSync(join(path, file), text)
    }
    const git = (...words: string[]) => execFileSync('git', words, { cwd: path, env: { ...process.env, HOME: home } })
    git('init', '--quiet')
    git('add', '.')
    const gate = new PermissionGate({
      workdir: () => path,
      homes: [home],
      accessOf: () => ({ kind: 'none' }),
    })
    const rulesOf = (deny: readonly string[], mode: PermissionMode) => ({
      mode,
      confirmation: false,
      rules: ruleSetOf({ allow: [], ask: [], deny: [...deny] }),
    })
    await gate.prepare(rulesOf(['Bash(x)'], 'bypass'))
    return {
      path,
      decide: (command, deny, mode = 'bypass') =>
        gate.verdictOn('Bash', { kind: 'command', command, cwd: path }, rulesOf(deny, mode), false),
    }
  }
}
