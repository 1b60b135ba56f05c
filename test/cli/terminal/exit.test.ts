import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

test('an error that nobody catches is written also while a thread waits for a disk, and the exit code is 1', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'exit-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const fifo = join(directory, 'fifo')
  execFileSync('mkfifo', [fifo])
  const child = join(import.meta.dirname, '../children/throw-while-a-thread-hangs.ts')
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; stderr: string }>()
  execFile(process.execPath, [child, fifo], (error, _, stderr) => resolve({ code: error?.code, stderr }))
  expect(await promise).toMatchObject({ code: 1, stderr: expect.stringContaining('Error: a mistake in the program') })
})
