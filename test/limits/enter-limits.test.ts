/** The command that a shell is started by, executed. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { enterArguments, SHELL } from '../../src/limits/enter-limits.ts'

const run = (options: Parameters<typeof enterArguments>[0], ...argv: string[]) =>
  spawnSync(SHELL, enterArguments(options, argv), { encoding: 'utf8' })

test('the program starts in the groups, with its limits, and before the server for the out-of-memory killer', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'enter-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const door = join(directory, 'cgroup procs')
  await writeFile(door, '')
  const rlimits = { data: 512 * 1024 ** 2, fileSize: 1024 ** 2, openFiles: 100, processes: 5000 }
  const script = 'ulimit -c; ulimit -d; ulimit -f; ulimit -n; ulimit -u; cat /proc/self/oom_score_adj'
  const { stdout, stderr } = run({ doors: [door], rlimits }, 'bash', '-c', script)
  expect(stderr).toBe('')
  expect(stdout.split('\n')).toEqual(['0', '524288', '1024', '100', '5000', '500', ''])
  expect(await readFile(door, 'utf8')).toBe('0\n')
})

test('it becomes the program: with its pid, and arguments as they are', () => {
  const { stdout, pid } = run({}, 'sh', '-c', 'echo $$ "$@"', 'sh', '--', 'a b', '$HOME')
  expect(stdout).toBe(`${pid} -- a b $HOME\n`)
})

test('a program that cannot enter its group does not start', () => {
  const { status, stdout } = run({ doors: ['/proc/none/cgroup.procs'] }, 'echo', 'started')
  expect(status).toBe(125)
  expect(stdout).toBe('')
})

test.runIf(existsSync('/proc/self/autogroup'))('its session gets less of the processor than others', async () => {
  const inOwnSession = () => {
    const argv = [SHELL, ...enterArguments({ isPoliteSession: true }, ['cat', '/proc/self/autogroup'])]
    return spawnSync(SHELL, ['-c', 'exec setsid -w "$@"', 'sh', ...argv], { encoding: 'utf8' }).stdout
  }
  // The kernel takes ten changes a second, of all users other than root together.
  await expect.poll(inOwnSession).toMatch(/ nice 10\n$/)
})
