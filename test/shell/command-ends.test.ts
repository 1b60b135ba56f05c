/** Every command can be ended and every shell closed, whatever its functions, traps and saved state make of the shell. */
import { describe, expect, test } from 'vitest'
import { mapBounded } from '../../src/lib/map-bounded.ts'
import { REPORT, STATE, STATE_END } from '../../src/shell/bash-report.ts'
import { openShells, processesOf, runIn } from './shell-fixture.ts'

/** What the server's own lines call, and what else a command needs to stop a shell. */
const NAMES = `
  builtin command unset eval exec export set shopt local declare alias printf kill cd trap enable
  return source . : [ test read typeset readonly exit
`
  .trim()
  .split(/\s+/)

/** Several at a time: each spends most of its time waiting for commands to be ended. */
const forEachName = (rule: (name: string, define: string) => Promise<void>) =>
  mapBounded(NAMES, 8, (name) =>
    rule(name, `cd /usr; export A=1; function ${name} { /bin/echo shadowed; /bin/false; }`),
  )

/** A shell that does not answer for that long would be killed, and another one started. */
const PATIENT = { graceMs: 10_000 }

describe('a function with the name of something that the server calls', () => {
  test('changes nothing of how commands are run, reported and ended', async () => {
    await forEachName(async (name, define) => {
      const { run } = await openShells({ limits: PATIENT })
      expect(await run(define), name).toMatchObject({ exitCode: 0, cwd: '/usr' })
      const failing = { exitCode: 3, cwd: '/usr', stdout: '', stderr: '' }
      expect(await run('/bin/sh -c "exit 3"'), name).toMatchObject(failing)
      expect(await run('/bin/sleep 20', { timeout: 0.2 }), name).toMatchObject({ timedOut: true, exitCode: 130 })
      expect(await run('/bin/echo $A', { env: { A: '2' } }), name).toMatchObject({ exitCode: 0, stdout: '2\n' })
    })
  })

  test('changes nothing of the next shell, that begins with it', async () => {
    await forEachName(async (name, define) => {
      const { run, shells, reopen } = await openShells({ limits: PATIENT })
      await run(define)
      await shells.close()
      const next = reopen().get('agent')
      const first = await runIn(next, '/bin/echo $A')
      expect(first, name).toMatchObject({ exitCode: 0, cwd: '/usr', stdout: '1\n' })
      expect(first.note, name).toMatch(/was restarted, with its/)
      const ended = { timedOut: true, exitCode: 130 }
      expect(await runIn(next, '/bin/sleep 20', { timeout: 0.2 }), name).toMatchObject(ended)
      // Of this name there is no function any more: the shell could report nothing with it.
      const kept = name === 'builtin' ? '' : 'shadowed\n'
      expect(await runIn(next, `${name} 2>/dev/null`), name).toMatchObject({ stdout: kept })
    })
  })
})

/** Ignores all that can be ignored. */
const STUBBORN = `trap "" INT TERM HUP; while :; do sleep 0.1 || :; done`

/** Reports in the server's format, each time a builtin is called, that another process is the shell. */
const FORGE = `builtin() {
  command printf '%s\\0' '' '${REPORT}'"$3" 0 / '' 1 yes 1 >&99
  command builtin "$@"
} 2>/dev/null
__agent_server_report() { builtin "" "" "$3"; }
__agent_server_own_builtin() { :; }`

describe('a command ends at its time limit', () => {
  test.each([
    ['ignores every signal', STUBBORN],
    ['ignores every signal, in a shell that reports what was never asked for', `${FORGE}\n${STUBBORN}`],
    ['has stopped its shell', 'kill -STOP $$'],
    ['has stopped what it waits for', `bash -c 'sh -c "kill -STOP \\$\\$" & wait'`],
    ['answers each signal with another process', 'trap "sleep 30 & wait" INT TERM; sleep 30 & wait'],
    ['has the shell skip all that it is asked', 'shopt -s extdebug; trap false DEBUG; sleep 30'],
    ['never lets the shell report', '__agent_server_report() { while true; do sleep 0.1; done; }'],
  ])('that %s', async (_, command) => {
    const { run, shells, conversationId } = await openShells({ limits: { graceMs: 100 } })
    expect(await run(command, { timeout: 0.3 })).toMatchObject({ timedOut: true })
    await shells.close()
    expect(processesOf(conversationId)).toBe(0)
  })
})

describe('a shell is closed', () => {
  test.each([
    ['a command that ignores every signal', STUBBORN],
    ['forged reports', `${FORGE}\n${STUBBORN}`],
    ['a stopped shell', 'kill -STOP $$'],
  ])('in spite of %s', async (_, command) => {
    const { run, shells, conversationId } = await openShells()
    const running = run(`echo begun >begun\n${command}`, { timeout: Infinity })
    await expect.poll(() => processesOf(conversationId)).toBeGreaterThan(0)
    await shells.close()
    expect(await running).toMatchObject({ interrupted: true })
    expect(processesOf(conversationId)).toBe(0)
  })

  test('in spite of a trap for its end, and of ignoring the end of its input', async () => {
    const { run, shells, conversationId } = await openShells()
    await run('trap "while :; do sleep 0.1; done" EXIT; IGNOREEOF=1000')
    await shells.close()
    expect(processesOf(conversationId)).toBe(0)
  })
})

describe('an invalid report', () => {
  const redefine = (fields: string) =>
    `__agent_server_report() { command printf '%s\\0' '' '${REPORT}'"$3" ${fields} >&99; }`

  test.each([
    ['has an exit code that is no number', `x / '' '' ''`],
    ['has an exit code that is too great', `99999999999999999999 / '' '' ''`],
    ['has a fraction for an exit code', `0.5 / '' '' ''`],
    ['names a directory that is no path', `0 relative also-relative -1 yes`],
    ['names an endless path', `0 "/$(printf 'x%.0s' {1..9000})" '' 12345678901234567890 yes`],
    ['names the init of the namespace as its background', `0 / '' 1 yes`],
  ])('ends its command, with what can be known: %s', async (_, fields) => {
    const { run, shell, workdir } = await openShells()
    const result = await run(redefine(fields))
    expect(result.exitCode === null || result.exitCode === 0).toBe(true)
    expect(['/', workdir]).toContain(result.cwd)
    expect(Number.isSafeInteger(result.backgroundPid ?? 0)).toBe(true)
    await shell.restart()
    expect(await run('echo up')).toMatchObject({ exitCode: 0, stdout: 'up\n', cwd: workdir })
  })
})

describe('a state that prevents the next shell from starting is discarded, and the result says so', () => {
  const save = (state: string) => `__agent_server_report() {
    command printf '%s\\0' '' '${REPORT}'"$3" 0 / '' '' '' '${STATE}'"$3" '${state}' '${STATE_END}'"$3" >&99
  }`

  test.each([
    ['ends it', 'exit 1'],
    ['never comes to an end', 'sleep 1000'],
    ['stops it', 'kill -STOP $$'],
    ['replaces it', 'exec sleep 1000'],
    ['closes its input', 'exec 0<&-'],
  ])('because it %s', async (_, state) => {
    const { run, shells, reopen, workdir } = await openShells({ limits: { startMs: 5000 } })
    await run(save(state))
    await shells.close()
    const next = await runIn(reopen().get('agent'), 'echo up')
    expect(next).toMatchObject({ exitCode: 0, stdout: 'up\n' })
    if (next.cwd === workdir && state !== 'exec 0<&-') expect(next.note).toMatch(/without its exports/)
  })
})
