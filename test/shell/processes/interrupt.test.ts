import { describe, expect, test } from 'vitest'
import { eventually, openShells, runIn, shareShell } from '../shell-fixture.ts'
import { longEnough } from '../../support/long-enough.ts'
import { effort } from '../../support/patience.ts'
import { takeTime } from '../../support/take-time.ts'

describe('a command that takes too long', () => {
  const kept = shareShell()

  test.each([
    ['a process', 'sleep 20', 130],
    ['a pipeline', 'sleep 20 | cat | cat', undefined],
    ['a loop of processes', 'while true; do sleep 0.01; done', 130],
    ['a loop of the shell itself', 'while :; do :; done', 130],
    ['a function', 'f() { sleep 20; }; f; echo not', 130],
    ['a wait for a child', 'sleep 20 & wait', 130],
    ['a list, of which the rest is not run', 'sleep 20; echo not', 130],
  ])('is ended, the shell kept: %s', async (_, command, exitCode) => {
    await kept('mkdir -p sub; cd sub; x=1; export A=2')
    const result = await kept(command, { timeout: 0.15 })
    expect(result).toMatchObject({ timedOut: true, interrupted: false, stdout: '' })
    if (exitCode !== undefined) expect(result.exitCode).toBe(exitCode)
    expect(result.note ?? '').not.toMatch(/shell/)
    expect((await kept('echo $x $A; basename $PWD; cd ..; unset x A')).stdout).toBe('1 2\nsub\n')
  })

  test('has its output so far in the result', async () => {
    const { run } = await openShells()
    const result = await longEnough(0.25, async (timeout) => {
      const ended = await run('echo begun; sleep 600', { timeout })
      return ended.stdout !== '' && ended
    })
    expect(result).toMatchObject({ stdout: 'begun\n', timedOut: true })
  })

  test('gets SIGTERM if it ignores SIGINT, and SIGKILL if it ignores that; the shell is kept', async () => {
    const { run } = await openShells({ limits: { graceMs: 1000 } })
    await run('x=1')
    const ignoring = (traps: string) => `bash -c 'trap "" ${traps}; while :; do sleep 30; done'`
    for (const traps of ['INT', 'INT TERM']) {
      const result = await run(ignoring(traps), { timeout: 0.1 })
      expect(result).toMatchObject({ timedOut: true, interrupted: false })
      expect(result.exitCode).toBeGreaterThan(128)
    }
    expect((await run('echo $x')).stdout).toBe('1\n')
  })

  test('because the shell itself will not stop costs the shell, not its exports', async () => {
    const { run } = await openShells({ limits: { graceMs: 50 } })
    await run('export A=1')
    const result = await longEnough(0.25, async (timeout) => {
      const ended = await run('trap "" INT TERM; echo set; while :; do :; done', { timeout })
      return ended.stdout !== '' && ended
    })
    expect(result).toMatchObject({ timedOut: true, exitCode: 137 })
    expect(result.note).toMatch(/SIGKILL|exit code 137/)
    expect((await run('echo $A')).stdout).toBe('1\n')
  })

  test('dies with all of its processes, also those in separate groups', async () => {
    const { run, isRunning } = await openShells()
    const pid = await longEnough(0.25, async (timeout) => {
      await run(`bash -c 'set -m; sleep 600 & echo $! >pid; wait'`, { timeout })
      const { stdout } = await run('cat pid 2>/dev/null')
      return stdout !== '' && Number(stdout)
    })
    expect(pid).toBeGreaterThan(0)
    await eventually(() => !isRunning(pid))
  })

  test('leaves alone what earlier commands put into the background', async () => {
    const { run, isRunning } = await openShells()
    const silent = await run('sleep 30 >/dev/null 2>&1 & sleep 31 >/dev/null 2>&1 &')
    const loud = await run('sleep 32 &')
    await run('sleep 20', { timeout: 0.1 })
    expect(isRunning(silent.backgroundPid!)).toBe(true)
    expect(isRunning(loud.backgroundPid!)).toBe(true)
    expect((await run('jobs -r | wc -l')).stdout.trim()).toBe('3')
  })
})

describe('a command that is aborted', () => {
  test('ends, and says it was interrupted', async () => {
    const { run } = await openShells()
    await run('x=1')
    const abort = new AbortController()
    const running = run('echo begun; sleep 20', { signal: abort.signal, onOutput: () => abort.abort() })
    expect(await running).toMatchObject({ interrupted: true, timedOut: false, exitCode: 130, stdout: 'begun\n' })
    expect((await run('echo $x')).stdout).toBe('1\n')
  })

  test('over and over leaves a shell that answers rightly', async () => {
    const { run } = await openShells()
    for (let i = 0; i < effort(10, 25); i++) {
      const abort = new AbortController()
      void takeTime(i % 5).then(() => abort.abort())
      await run('for j in {1..100}; do /bin/true; done', { signal: abort.signal })
      expect(await run(`echo ${i}`)).toMatchObject({ exitCode: 0, stdout: `${i}\n`, stderr: '' })
    }
  })
})

test('a hung command in one shell does not slow another', async () => {
  const { shells, run } = await openShells()
  const abort = new AbortController()
  const hung = run('sleep 20', { signal: abort.signal })
  const other = shells.get('other')
  for (let i = 0; i < 5; i++) expect((await runIn(other, `echo ${i}`)).stdout).toBe(`${i}\n`)
  abort.abort()
  expect(await hung).toMatchObject({ interrupted: true })
})
