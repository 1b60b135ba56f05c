import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, open, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readSmallFile, readSmallFileSync, whyUnreadable } from '../../src/files/small-file.ts'

const execFileAsync = promisify(execFile)

let directory: string
const path = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-server-small-file-'))
  execFileSync('mkfifo', [path('pipe'), path('used-pipe'), path('late-pipe')])
  await writeFile(path('large'), '')
  await truncate(path('large'), 1024 ** 3)
  await writeFile(path('text'), 'some text')
  await symlink('/dev/zero', path('endless'))
})
afterAll(() => rm(directory, { recursive: true }))

test.each([
  ['large', 'it is larger than 1 MiB'],
  ['endless', 'it is not a regular file'],
  ['.', 'EISDIR'],
  ['missing', 'ENOENT'],
])('%s is refused', async (name, why) => {
  const error = await readSmallFile(path(name)).catch((reason: unknown) => reason)
  expect(whyUnreadable(error)).toBe(why)
  expect(() => readSmallFileSync(path(name))).toThrow()
})

test.concurrent('a pipe without a writer is empty after a while, and so is /dev/null', async () => {
  expect(await readSmallFile(path('pipe'))).toHaveLength(0)
  expect(await readSmallFile('/dev/null')).toHaveLength(0)
})

test.concurrent('a named pipe may get its writer later', async () => {
  const read = readSmallFile(path('late-pipe'))
  await execFileAsync('sh', ['-c', 'echo late > "$0"', path('late-pipe')])
  expect(String(await read)).toBe('late\n')
})

test('a pipe is read to the end of its writer, or until the signal', async () => {
  await using pipe = await open(path('used-pipe'), 'r+')
  await pipe.write('first')
  const interrupted = new AbortController()
  const reading = readSmallFile(path('used-pipe'), interrupted.signal)
  interrupted.abort()
  await expect(reading).rejects.toThrow('aborted')
  const rest = readSmallFile(path('used-pipe'))
  await pipe.write(' and last')
  await pipe.close()
  expect(String(await rest)).toBe(' and last')
})

test('a file is read whole', async () => {
  expect(String(readSmallFileSync(path('text')))).toBe('some text')
  expect(String(await readSmallFile(path('text')))).toBe('some text')
})
