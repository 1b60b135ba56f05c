import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CommandRecordFiles } from '../../../src/storage/files/command-record-files.ts'

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-records-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

const idOf = (digit: number): string => `0000000${digit}-0000-7000-8000-000000000000`

test('records are listed by their id, with the hash of a key, and other files are not', async () => {
  const directory = join(await makeDirectory(), 'commands')
  const files = new CommandRecordFiles(directory)
  expect(await files.entries()).toEqual([])
  const keyHash = '0123456789abcdef'
  for (const entry of [{ id: idOf(1), keyHash }, ...[5, 3, 7, 2, 6, 4].map((digit) => ({ id: idOf(digit) }))])
    await files.write({ keyHash: undefined, ...entry }, { id: entry.id }, { durable: false })
  await writeFile(files.outputPath(idOf(1), 'stdout'), 'abc')
  await writeFile(join(directory, `x${idOf(8)}.json`), '{}')
  const entries = await files.entries()
  expect(entries).toEqual([
    { id: idOf(1), keyHash },
    ...[2, 3, 4, 5, 6, 7].map((digit) => ({ id: idOf(digit), keyHash: undefined })),
  ])
  expect(await files.read(entries[0]!)).toEqual({ id: idOf(1) })
  expect(await files.outputBytes([idOf(1), idOf(2)])).toBe(3)
  await files.remove(entries[0]!)
  expect(await files.entries()).toHaveLength(6)
  expect(await files.outputBytes([idOf(1)])).toBe(0)
})

test('a record that is missing or cut off has no value, and one that cannot be read is an error', async () => {
  const directory = await makeDirectory()
  const files = new CommandRecordFiles(directory)
  const entry = { id: idOf(1), keyHash: undefined }
  expect(await files.read(entry)).toBeUndefined()
  await writeFile(join(directory, `${idOf(1)}.json`), '{"id":')
  expect(await files.read(entry)).toBeUndefined()
  await mkdir(join(directory, `${idOf(2)}.json`))
  await expect(files.read({ ...entry, id: idOf(2) })).rejects.toThrow('EISDIR')
  const blocked = new CommandRecordFiles(join(directory, `${idOf(1)}.json`))
  await expect(blocked.entries()).rejects.toThrow('ENOTDIR')
})
