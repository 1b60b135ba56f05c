import { pbkdf2 } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtempDisposable, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SyncedFile, replaceFile, syncDirectory } from '../../src/lib/durable-file.ts'

async function makeDirectory(): Promise<string> {
  const directory = await mkdtempDisposable(join(tmpdir(), 'durable-file-'))
  onTestFinished(() => directory.remove())
  return directory.path
}

test.each([{}, { durable: false }, { draft: 'draft' }])('replaces a file and leaves no other file: %o', async (how) => {
  const directory = await makeDirectory()
  const path = join(directory, 'file')
  const options = 'draft' in how ? { draft: join(directory, 'draft') } : how
  await replaceFile(path, 'old and longer', options)
  await replaceFile(path, 'new', options)
  expect(await readFile(path, 'utf8')).toBe('new')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['file'])
})

test('readers find the old file or the new one, never a part', async () => {
  const path = join(await makeDirectory(), 'file')
  const contents = ['a', 'b'].map((letter) => letter.repeat(300_000))
  await replaceFile(path, contents[0]!)
  const writing = Array.fromAsync({ length: 20 }, (_, i) => replaceFile(path, contents[i % 2]!))
  const reading = Array.fromAsync({ length: 60 }, () => readFile(path, 'utf8'))
  const [read] = await Promise.all([reading, writing])
  expect(read.filter((content) => !contents.includes(content))).toEqual([])
})

test('a write that fails leaves only the old file', async () => {
  const directory = await makeDirectory()
  const path = join(directory, 'file')
  await replaceFile(path, 'old')
  const failing = (async function* () {
    yield 'new'
    throw new Error('no more')
  })()
  await expect(replaceFile(path, failing)).rejects.toThrow('no more')
  expect([await readFile(path, 'utf8'), await readdir(directory)]).toEqual(['old', ['file']])
  await mkdir(join(directory, 'folder'))
  await expect(replaceFile(join(directory, 'folder'), 'new')).rejects.toMatchObject({ code: 'EISDIR' })
  expect(await readdir(directory)).toEqual(['file', 'folder'])
})

test('the remains of a crash are replaced', async () => {
  const directory = await makeDirectory()
  const [path, draft] = [join(directory, 'file'), join(directory, 'draft')]
  await writeFile(draft, 'half of something longer')
  await replaceFile(path, 'whole', { draft })
  expect(await readFile(path, 'utf8')).toBe('whole')
})

test('syncing a missing directory is an error', async () => {
  await expect(syncDirectory(join(await makeDirectory(), 'none'))).rejects.toMatchObject({ code: 'ENOENT' })
})

/** Has each thread of the pool work, so that what is handed to it begins later. */
async function keepThreadsBusy(): Promise<void> {
  const works = Array.from({ length: 64 }, async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    pbkdf2('password', 'salt', 20_000, 64, 'sha512', () => resolve())
    await promise
  })
  await Promise.all(works)
}

test('a file that is closed during a write never writes into another one', async () => {
  const directory = await makeDirectory()
  const [first, second] = [join(directory, 'first'), join(directory, 'second')]
  const file = await SyncedFile.create(first)
  const busy = keepThreadsBusy()
  const writing = file.write(Buffer.from('first'))
  const closing = file.close()
  // It gets the number of a descriptor that was closed.
  const other = openSync(second, 'w')
  await Promise.allSettled([writing, closing, busy])
  closeSync(other)
  expect([await readFile(first, 'utf8'), await readFile(second, 'utf8')]).toEqual(['first', ''])
  await expect(file.write(Buffer.from('more'))).rejects.toThrow('closed')
})
