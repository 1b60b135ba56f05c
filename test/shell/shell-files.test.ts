import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('nothing is left of a command that a full disk took only a part of', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'shell-files-'))
  const child = join(import.meta.dirname, 'children/fill-up.ts')
  const limited = ['-c', 'ulimit -S -f 1; exec "$0" "$@"', process.execPath, child, directory]
  const { stdout } = await promisify(execFile)('bash', limited)
  await rm(directory, { recursive: true })
  expect(JSON.parse(stdout)).toEqual({ code: 'EFBIG', script: 'echo a second one' })
})
