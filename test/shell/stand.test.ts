/** What an earlier command has left in the shell, and what a later one therefore needs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PermissionGate } from '../../src/policy/permissions.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { openShells } from './shell-fixture.ts'

const NEVER = new AbortController().signal

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
  expect(shells.standOf(shell.id).path).toBe('/a\nb')
  expect(reopen().standOf('other').path).toBe(first)
})

test.each(['C', 'C.UTF-8'])('the search path is known with every name that is text (locale %s)', async (locale) => {
  const { shells, shell, run, workdir } = await openShells({
    env: HostEnvironment.from({ PATH: process.env['PATH'], LANG: locale, LC_ALL: locale }),
  })
  const first = shells.standOf(shell.id).path ?? ''
  const names = ['j\u00fcrgen', 'back\\slash', "quote's", 'new\nline', '$dollar']
  const own = names.map((name) => `${workdir}/${name}`).join(':')
  await run(`PATH='${own.replaceAll("'", `'\\''`)}':"$PATH"`)
  expect(shells.standOf(shell.id).path).toBe(`${own}:${first}`)
  await run(`PATH=$'/x\\xff':"$PATH"`)
  expect(shells.standOf(shell.id), 'not UTF-8').toEqual({ cwd: undefined, path: null })
})

test('nothing is known of a shell whose report is too long, or names a directory that is not UTF-8', async () => {
  const { shells, shell, run, workdir } = await openShells()
  await run('true')
  expect(shells.standOf(shell.id)).toMatchObject({ cwd: workdir, evaluates: expect.arrayContaining(['RANDOM']) })
  await run("mkdir $'d\\xff'; cd $'d\\xff'")
  expect(shells.standOf(shell.id)).toEqual({ cwd: undefined, path: null })
  await run(`cd '${workdir}'`)
  expect(shells.standOf(shell.id)).toMatchObject({ cwd: workdir, evaluates: expect.arrayContaining(['RANDOM']) })
  await run('declare -ai big=({1..200000})')
  expect(shells.standOf(shell.id)).toEqual({ cwd: undefined, path: null })
})

test('a command in the background begins with the state that the gate knows, or not at all', async () => {
  const { shells, shell, run, workdir } = await openShells()
  await run('mkdir other; cd other; export x=1')
  await (await shells.fork(shell.id, 'first')).close()
  await run('x=$(seq 1 200000)')
  await run(`cd '${workdir}'`)
  expect(shells.standOf(shell.id)).toMatchObject({ cwd: workdir })
  await expect(shells.fork(shell.id, 'second')).rejects.toMatchObject({ code: 'limit_reached' })
  await run('unset x')
  await using fork = await shells.fork(shell.id, 'third')
  expect(await fork.run('pwd', { timeout: PATIENCE_S, signal: NEVER })).toMatchObject({ stdout: `${workdir}\n` })
})
