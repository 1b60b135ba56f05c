import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, expect, test, vi } from 'vitest'
import { eventually, openShells, processesOf, runIn } from './shell-fixture.ts'
import { UNTIL_ALLOWED } from '../support/background.ts'
import { launcherOf } from '../support/launcher.ts'
import { longEnough } from '../support/long-enough.ts'

/** As a result's note names it. */
function backgroundFile(note: string | undefined): string {
  const path = /goes to (\S+)\.(?= |$)/.exec(note ?? '')?.[1]
  if (path === undefined) throw new Error(`No file named in: ${note}`)
  return path
}

describe('a trailing &', () => {
  test('gives the pid at once, and the process outlives the call', async () => {
    const { run, isRunning } = await openShells()
    const result = await run('echo begun; sleep 1000 &')
    expect(result).toMatchObject({ exitCode: 0, stdout: 'begun\n' })
    expect(isRunning(result.backgroundPid!)).toBe(true)
    expect((await run('jobs -p')).stdout).toBe(`${result.backgroundPid}\n`)
    await run(`kill ${result.backgroundPid}`)
    await eventually(() => !isRunning(result.backgroundPid!))
  })

  test('sends later output to a file that the result names', async () => {
    const { run } = await openShells()
    const result = await run(`echo now; { ${UNTIL_ALLOWED}; echo late; echo wrong >&2; } &`)
    expect(result.stdout).toBe('now\n')
    await run('touch allowed; wait')
    await eventually(async () => (await readFile(backgroundFile(result.note), 'utf8')) === 'late\nwrong\n')
  })

  test('needs no file when the output goes elsewhere', async () => {
    const { run } = await openShells()
    // Until its streams lead there: before, they are those of the shell.
    const redirected = 'until [[ $(readlink /proc/$!/fd/2) == */log ]]; do sleep 0.01; done'
    const result = await run(`sleep 30 >log 2>&1 & ${redirected}`)
    expect(result.backgroundPid).toBeGreaterThan(0)
    expect(result.note).toBeUndefined()
  })

  test('is reported only by the command that started it', async () => {
    const { run } = await openShells()
    await run('sleep 0.01 &')
    const next = await run('echo next')
    expect(next).toMatchObject({ stdout: 'next\n' })
    expect(next.backgroundPid).toBeUndefined()
    expect((await run('sleep 0.01 & wait')).backgroundPid).toBeUndefined()
  })

  test('repeatedly gives each its own file', async () => {
    const { run } = await openShells()
    const files: string[] = []
    for (let i = 0; i < 10; i++) files.push(backgroundFile((await run(`{ ${UNTIL_ALLOWED}; echo ${i}; } &`)).note))
    await run('touch allowed; wait')
    const texts = () => Promise.all(files.map((file) => readFile(file, 'utf8')))
    await expect.poll(texts).toEqual(files.map((_, i) => `${i}\n`))
  })
})

test('a command ends when it ends, though a child that it left behind holds its output', async () => {
  const { run } = await openShells()
  const result = await run('(setsid sleep 1000 &) ; echo done')
  expect(result).toMatchObject({ exitCode: 0, stdout: 'done\n' })
  expect(result.note).toMatch(/goes to/)
})

test('a flood from the background does not hold up the command that started it', async () => {
  const { run } = await openShells()
  const result = await run('yes >&2 & echo on')
  expect(result).toMatchObject({ exitCode: 0, stdout: 'on\n' })
  expect((await run('kill %1; echo killed')).stdout).toBe('killed\n')
})

test('what the background writes beyond its file is dropped: it continues at a slow pace', async () => {
  const limit = 100_000
  const { run } = await openShells({ limits: { backgroundBytes: limit } })
  const { note, backgroundPid } = await run(`{ ${UNTIL_ALLOWED}; yes | head -c 300000; echo over >done; sleep 30; } &`)
  const file = backgroundFile(note)
  await run('touch allowed')
  await eventually(async () => (await run('cat done 2>/dev/null')).stdout === 'over\n')
  expect((await readFile(file)).length).toBe(limit)
  expect((await run(`kill -0 ${backgroundPid} && echo runs`)).stdout).toBe('runs\n')
})

/** With a user namespace of its own, it takes no rights to make one. */
const WALL = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child']

test('in a sandbox with a PID namespace, commands end and outlive as on the host', async () => {
  const launcher = launcherOf((argv) => [...WALL, ...argv], 1)
  const { run, shells, conversationId } = await openShells({ launcher })
  const { backgroundPid } = await run('x=1; sleep 30 >/dev/null 2>&1 &')
  expect(backgroundPid).toBeLessThan(100)
  const late = await longEnough(0.25, async (timeout) => {
    const ended = await run('echo begun; sleep 600; echo not', { timeout })
    return ended.stdout !== '' && ended
  })
  expect(late).toMatchObject({ timedOut: true, exitCode: 130, stdout: 'begun\n' })
  expect((await run(`echo $x; kill -0 ${backgroundPid} && echo runs`)).stdout).toBe('1\nruns\n')
  await shells.close()
  expect(processesOf(conversationId)).toBe(0)
})

describe('close', () => {
  test('ends every process of the conversation, daemons too, and resolves when they are dead', async () => {
    const { shells, run, conversationId } = await openShells()
    await run('sleep 30 & setsid sleep 31 & (setsid sh -c "trap : TERM HUP; while :; do sleep 0.01; done" &)')
    await runIn(shells.get('other'), 'nohup sleep 32 >/dev/null 2>&1 &')
    const running = run('sleep 33')
    await expect.poll(() => processesOf(conversationId)).toBeGreaterThan(5)
    await shells.close()
    expect(processesOf(conversationId)).toBe(0)
    expect(await running).toMatchObject({ interrupted: true })
  })

  test.each([
    ['', 0],
    [', also on a machine that stands still for longer than the search may take', 10_000],
  ])('ends what multiplies while it is searched for%s', async (_, standsStillMs) => {
    const { shells, run, conversationId } = await openShells()
    await run(
      `cat >breed <<'EOF'\nsleep 0.2\nsetsid sh ./breed &\nEOF\nfor i in 1 2 3 4 5; do setsid sh ./breed & done`,
    )
    const now = performance.now.bind(performance)
    let looks = 0
    using _clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + looks++ * standsStillMs)
    await shells.close()
    expect(processesOf(conversationId)).toBe(0)
  })

  test('of one session leaves the others', async () => {
    const { shells, shell, run, isRunning } = await openShells()
    const own = await run('setsid sleep 30 >/dev/null 2>&1 & x=$!; sleep 0.05')
    const other = await runIn(shells.get('other'), 'sleep 30 &')
    await shell.close()
    expect(isRunning(own.backgroundPid!)).toBe(false)
    expect(isRunning(other.backgroundPid!, 'other')).toBe(true)
  })

  test('leaves full outputs and no other file but the saved state', async () => {
    const { shells, run, outputDir } = await openShells({ limits: { outputBytes: 10 } })
    const { fullOutputPath } = await run('seq 100')
    const { note } = await run('sleep 30 &')
    const file = backgroundFile(note)
    expect(existsSync(file)).toBe(true)
    await shells.close()
    expect(existsSync(file)).toBe(false)
    expect(existsSync(fullOutputPath!)).toBe(true)
    expect(readdirSync(`${outputDir}/../state/agent`)).toEqual(['state'])
  })

  test('is the end: no session is available, no command can run', async () => {
    const { shells, shell, run } = await openShells()
    await run('true')
    await shells.close()
    expect(() => shells.get('agent')).toThrow(/closed/)
    await expect(shell.run('true', { timeout: 1, signal: AbortSignal.any([]) })).rejects.toThrow(/closed/)
    await shells.close()
  })
})
