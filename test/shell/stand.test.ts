/** What an earlier command has left in the shell, and what a later one therefore needs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { openShells } from './shell-fixture.ts'

const EVALUATED = 'a[$(touch ran)]'
const ASSIGNMENTS = [
  `n='${EVALUATED}'`,
  `n+='${EVALUATED}'`,
  `n='${EVALUATED}' echo`,
  `for n in '${EVALUATED}'; do echo; done`,
  `v='${EVALUATED}'; n=v`,
  `declare n='${EVALUATED}'`,
  `read n <<< '${EVALUATED}'`,
]

test('what the shell evaluates by an attribute of a variable needs a permission', async () => {
  const { shells, shell, run, workdir } = await openShells()
  const gate = new PermissionGate({ workdir: () => workdir, homes: [], accessOf: () => ({ kind: 'none' }) })
  const decide = async (command: string, mode: 'default' | 'bypass' = 'default') => {
    const deny = mode === 'bypass' ? ['Bash(touch:*)'] : []
    const allow = ['Bash(declare:*)', 'Bash(read:*)', 'Edit(**)']
    const rules = { mode, confirmation: false, rules: ruleSetOf({ allow, ask: [], deny }) }
    await gate.prepare(rules)
    const access = { kind: 'command', command, ...shells.standOf(shell.id) } as const
    return gate.verdictOn('Bash', access, rules, false).behavior
  }
  const decideAll = async (mode?: 'bypass') => Promise.all(ASSIGNMENTS.map((command) => decide(command, mode)))
  expect(await decideAll()).toEqual(ASSIGNMENTS.map(() => 'allow'))
  for (const command of ASSIGNMENTS) await run(command)
  expect(existsSync(join(workdir, 'ran'))).toBe(false)

  expect(await decide('declare -i n')).toBe('ask')
  await run('declare -i n=1; declare -n name; declare -ai list')
  expect(shells.standOf(shell.id).evaluates).toEqual(expect.arrayContaining(['n', 'name', 'list']))
  expect(await decideAll()).toEqual(ASSIGNMENTS.map(() => 'ask'))
  expect(await decideAll('bypass')).toEqual(ASSIGNMENTS.map(() => 'ask'))
  for (const command of ['n=2', 'v=x', 'echo $n', 'declare v=x', 'for v in a b; do echo; done'])
    expect([command, await decide(command)]).toEqual([command, 'allow'])
  expect(await decide(`name='${EVALUATED}'`)).toBe('ask')
  await run(ASSIGNMENTS[0] ?? '')
  expect(existsSync(join(workdir, 'ran')), 'bash does evaluate it').toBe(true)

  await run('declare +i n; unset -n name')
  expect(await decide(ASSIGNMENTS[0] ?? '')).toBe('allow')
})

test('the search path of a shell is known as it is, and from its start', async () => {
  const { shells, shell, run, workdir, reopen } = await openShells()
  const first = shells.standOf(shell.id).path ?? ''
  expect(first.split(':')).toContain('/usr/bin')
  await run('true')
  expect(shells.standOf(shell.id).path).toBe(first)
  await run('mkdir "a b"; export PATH="$PWD/a b:$PATH::."')
  expect(shells.standOf(shell.id)).toMatchObject({ cwd: workdir, path: `${workdir}/a b:${first}::.` })
  expect(shells.standOf(shell.id, true)).toEqual({ cwd: undefined, evaluates: [], path: first })
  await run("export PATH=$'/a\\nb'")
  expect(shells.standOf(shell.id).path, 'a place that is not known').toBe('')
  expect(reopen().standOf('other').path).toBe(first)
})
