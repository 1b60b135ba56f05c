/** A stop of a server whose conversations have many shells: all of it is ended in time, and the exit code says so. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { setStage, type Stage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'
import { effort, PATIENCE_MS } from '../support/patience.ts'

const SHELLS = effort(12, 1000)
const AT_ONCE = 8

const stageOf = () => setStage([{ text: 'Never asked.' }], { env: { OPENHANDS_ISOLATION: inject('isolation') } })

/** A shell with one process below it, and one that has left its tree. */
async function withShell(stage: Stage, fields: object = {}): Promise<string> {
  const id = await stage.create({ ...fields })
  const command = 'sleep 1000 & setsid sleep 1000 & echo there'
  expect((await stage.server.call('POST', `/conversations/${id}/commands`, { command })).status).toBe(200)
  return id
}

test(
  `${SHELLS} shells: none of their processes is left, and the exit code is 0`,
  { timeout: 4 * PATIENCE_MS },
  async () => {
    await using stage = await stageOf()
    const ids: string[] = []
    let begun = 0
    const make = async () => {
      while (begun++ < SHELLS) ids.push(await withShell(stage))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, make))
    expect(markedProcesses(ids[0]!).length).toBeGreaterThan(2)
    expect(await stage.server.stop('SIGTERM'), stage.server.output()).toBe(0)
    expect(ids.filter((id) => markedProcesses(id).length > 0)).toEqual([])
  },
)

const execute = promisify(execFile)
const canFreeze =
  process.getuid?.() === 0 &&
  (await execute('losetup', ['-f']).then(
    () => true,
    () => false,
  ))

/** It takes as long as a stop may. */
test.runIf(canFreeze && effort(0, 1) > 0)(
  'a process that the kernel does not end makes the exit code 1, and is named',
  async () => {
    const root = await mkdtemp(join(tmpdir(), 'stopping-'))
    const [image, disk] = [join(root, 'image'), join(root, 'disk')]
    await mkdir(disk)
    await execute('truncate', ['-s', '16M', image])
    await execute('mkfs.ext4', ['-q', image])
    await execute('mount', ['-o', 'loop', image, disk])
    onTestFinished(async () => {
      await execute('umount', ['-l', disk])
      await rm(root, { recursive: true, force: true })
    })
    await using stage = await stageOf()
    const workdir = join(disk, 'workdir')
    await mkdir(workdir)
    const id = await stage.create({ workdir })
    await stage.server.call('POST', `/conversations/${id}/commands`, { command: 'echo there >file; sync' })
    await execute('fsfreeze', ['-f', disk])
    try {
      stage.server.call('POST', `/conversations/${id}/commands`, { command: 'echo stuck >stuck' }).catch(() => {})
      await expect.poll(() => markedProcesses(id).some(({ state }) => state === 'D')).toBe(true)
      expect(await stage.server.stop('SIGTERM')).toBe(1)
      const stuck = markedProcesses(id).map(({ pid }) => pid)
      expect(stage.server.output()).toMatch(
        new RegExp(`"pids":\\[.*${stuck[0]}.*processes of conversations could not be ended`),
      )
    } finally {
      await execute('fsfreeze', ['-u', disk])
    }
  },
)
