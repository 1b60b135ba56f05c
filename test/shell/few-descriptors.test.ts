/** What starts in addition to the shells of a conversation, while the server has no free descriptor. */
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { openShells, runIn } from './shell-fixture.ts'
import { launcherOf } from '../support/launcher.ts'

test('a program waits for descriptors as a command does', async () => {
  let refusals = 1
  const launcher = launcherOf((argv) => {
    if (refusals-- > 0) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
    return argv
  })
  const { shells } = await openShells({ launcher })
  const program = await shells.startProgram({ name: 'one', argv: ['echo', 'started'], variables: {} })
  expect(await text(program.stdout)).toBe('started\n')
})

test('a shell for one command is possible again after what a killed server left could once not be looked for', async () => {
  const { shells, outputDir } = await openShells()
  const stateDir = join(dirname(outputDir), 'state')
  await mkdir(dirname(stateDir), { recursive: true })
  await symlink('state', stateDir) // leads to itself
  await expect(shells.fork(undefined, 'a')).rejects.toThrow('ELOOP')
  await rm(stateDir)
  expect((await runIn(await shells.fork(undefined, 'b'), 'echo works')).stdout).toBe('works\n')
})
