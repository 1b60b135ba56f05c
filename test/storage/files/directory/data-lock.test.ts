import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  DATA_FORMAT,
  DataDirectoryError,
  lockDataDirectory,
} from '../../../../src/storage/files/directory/data-lock.ts'
import { tempDirectory } from '../../../events/fixtures.ts'

test('a data directory has one server at a time', async () => {
  await using directory = await tempDirectory()
  const data = join(directory.path, 'made', 'on', 'the', 'way')
  {
    await using held = await lockDataDirectory(data)
    expect(held.format).toBeUndefined()
    await held.raiseFormat()
    await expect(lockDataDirectory(data)).rejects.toThrow(DataDirectoryError)
    await expect(lockDataDirectory(data)).rejects.toThrow(/in use by another server/)
  }
  await using again = await lockDataDirectory(data)
  expect(again.format).toBe(DATA_FORMAT)
  expect(await readFile(join(data, 'version'), 'utf8')).toBe(`${DATA_FORMAT}\n`)
})

test('another process is kept out, and what it leaves behind after kill -9 does not prevent a start', async () => {
  await using directory = await tempDirectory()
  const server = spawn(process.execPath, [join(import.meta.dirname, '../children/hold-lock.ts'), directory.path])
  await once(server.stdout, 'data')
  await expect(lockDataDirectory(directory.path)).rejects.toThrow(/in use by another server/)
  server.kill('SIGKILL')
  await once(server, 'close')
  await using _held = await lockDataDirectory(directory.path)
})

test('a damaged lock file can be removed, as the message says', async () => {
  await using directory = await tempDirectory()
  const path = join(directory.path, 'lock.db')
  await writeFile(path, 'x'.repeat(4096))
  await expect(lockDataDirectory(directory.path)).rejects.toThrow(`Remove ${path}: it is damaged`)
  await rm(path)
  await using _held = await lockDataDirectory(directory.path)
})

test.each([
  [`${DATA_FORMAT + 1}\n`, /newer version/],
  ['', /does not hold a version number/],
  ['1.5', /does not hold a version number/],
])('a data directory of version %j is refused, and not kept locked', async (version, sentence) => {
  await using directory = await tempDirectory()
  await writeFile(join(directory.path, 'version'), version)
  await expect(lockDataDirectory(directory.path)).rejects.toThrow(sentence)
  await writeFile(join(directory.path, 'version'), `${DATA_FORMAT}\n`)
  await using _held = await lockDataDirectory(directory.path)
})

test.each([
  ['cannot be read', undefined, /EISDIR/],
  ['is no number', 'x\n', /does not hold a version number/],
  ['is no version', '0\n', /does not hold a version number/],
  ['is that of a newer server', `${DATA_FORMAT + 1}\n`, /was written by a newer version/],
])('a directory whose version %s is not taken for a new one', async (_, text, message) => {
  await using directory = await tempDirectory()
  const path = join(directory.path, 'version')
  await (text === undefined ? mkdir(path) : writeFile(path, text))
  await expect(lockDataDirectory(directory.path)).rejects.toThrow(message)
})
