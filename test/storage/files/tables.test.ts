/** The tables of a data directory: made from the files of earlier versions, whatever comes between, and never begun again. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openFileStorage } from '../../../src/storage/files/file-storage.ts'
import { openTables } from '../../../src/storage/files/tables/open-tables.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { tempDirectory } from '../../events/fixtures.ts'

const open = (directory: string) =>
  openFileStorage({ directory, operatorKeys: ['key of the operator'], onFault: () => {} })

/** The SHA-256 of `/work/a`. */
const HASH = '3ee64fd81e9d42ba15b3e0d7a6b3bb4e9c5fa5e1ee17ce4f7e5b6a6f3f6d3c11'
const USED = '2026-01-31T12:00:00.000Z'

/** As a server of format 2 has left it. */
async function setEarlier() {
  const directory = await tempDirectory()
  const [apiKey, deleted, guest] = [uuid7(), uuid7(), uuid7()]
  const data = join(directory.path, 'data')
  const created = { key: 'k', bodyHash: 'h', id: deleted, at: new Date().toISOString() }
  const writeKeys = (...names: readonly string[]) =>
    writeFile(
      join(data, 'keys.json'),
      JSON.stringify({ version: 1, keys: names.map((name) => ({ id: apiKey, name, last_used_at: USED })) }),
    )
  await mkdir(join(data, 'deleted'), { recursive: true })
  await mkdir(join(data, 'shared-workdirs', HASH), { recursive: true })
  await writeFile(join(data, 'version'), '2\n')
  await writeKeys('dashboard')
  await writeFile(join(data, 'deleted', deleted), '')
  await writeFile(join(data, 'deleted', `${deleted}.key`), JSON.stringify(created))
  const torn = uuid7()
  await writeFile(join(data, 'deleted', torn), '')
  await writeFile(join(data, 'deleted', `${torn}.key`), '{"key')
  await writeFile(join(data, 'shared-workdirs', HASH, guest), '')
  const expectAll = async (storage: Storage, name = 'dashboard') => {
    expect((await storage.apiKeys.read()).keys).toEqual([{ id: apiKey, value: { id: apiKey, name }, usedAt: USED }])
    expect((await storage.deletions.ids()).toSorted()).toEqual([deleted, torn].toSorted())
    expect(await storage.deletions.keys(0)).toEqual([created])
  }
  return { data, guest, writeKeys, expectAll, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() }
}

const rowsIn = (data: string, sql: string) => {
  using tables = new DatabaseSync(join(data, 'tables.db'))
  return tables.prepare(sql).all()
}

describe('a data directory of an earlier version', () => {
  test('is read into the tables once, and its files are kept aside', async () => {
    await using earlier = await setEarlier()
    for (let again = 0; again < 2; again++) {
      await using storage = await open(earlier.data)
      await earlier.expectAll(storage)
      expect(rowsIn(earlier.data, 'SELECT * FROM shared_workdirs')).toEqual([{ workdir: HASH, id: earlier.guest }])
    }
    expect(await readFile(join(earlier.data, 'version'), 'utf8')).toBe('3\n')
    expect((await readdir(join(earlier.data, 'before-format-3'))).toSorted()).toEqual([
      'deleted',
      'keys.json',
      'shared-workdirs',
    ])
    expect(await readdir(earlier.data)).not.toContain('deleted')
  })

  test('counts until its format is raised: what an earlier version has changed after a crash is not lost', async () => {
    await using earlier = await setEarlier()
    const crash = () => Promise.reject(new Error('the power fails'))
    for (let times = 0; times < 2; times++)
      await expect(openTables(earlier.data, { format: 2, raiseFormat: crash })).rejects.toThrow('the power fails')
    expect(await readdir(earlier.data)).toContain('keys.json')
    await earlier.writeKeys('renamed by the earlier version')
    await using storage = await open(earlier.data)
    await earlier.expectAll(storage, 'renamed by the earlier version')
  })

  test('is complete after a crash while the tables are made, or while the files are set aside', async () => {
    await using earlier = await setEarlier()
    for (const left of ['tables.db.new', 'tables.db.new-journal', 'tables.db-journal'])
      await writeFile(join(earlier.data, left), 'half of something')
    await (await open(earlier.data))[Symbol.asyncDispose]()
    for (const name of ['deleted', 'shared-workdirs'])
      await rename(join(earlier.data, 'before-format-3', name), join(earlier.data, name))
    await using storage = await open(earlier.data)
    await earlier.expectAll(storage)
    expect((await readdir(join(earlier.data, 'before-format-3'))).length).toBe(3)
  })

  test('has files that were put back by hand moved aside again, with a report and without replacing others', async () => {
    await using earlier = await setEarlier()
    const kept = join(earlier.data, 'before-format-3')
    const reported: (readonly string[])[] = []
    const openAgain = () =>
      openFileStorage({
        directory: earlier.data,
        operatorKeys: ['key of the operator'],
        onFault: () => {},
        onSetAside: (paths) => void reported.push(paths),
      })
    await (await openAgain())[Symbol.asyncDispose]()
    expect(reported).toEqual([])
    await cp(join(kept, 'deleted'), join(earlier.data, 'deleted'), { recursive: true })
    await earlier.writeKeys('put back')
    await using storage = await openAgain()
    await earlier.expectAll(storage)
    expect(reported).toEqual([[join(kept, 'keys.json.2'), join(kept, 'deleted.2')]])
    expect(await readFile(join(kept, 'keys.json'), 'utf8')).toContain('dashboard')
    expect(await readFile(join(kept, 'keys.json.2'), 'utf8')).toContain('put back')
  })

  test('is refused as it is when its API keys are damaged: revoked ones must not come back', async () => {
    await using earlier = await setEarlier()
    await writeFile(join(earlier.data, 'keys.json'), '{"version": 1, "keys": [')
    await expect(open(earlier.data)).rejects.toThrow(/keys\.json is damaged\. Restore it from a backup/)
    expect(await readFile(join(earlier.data, 'version'), 'utf8')).toBe('2\n')
    await earlier.writeKeys('dashboard')
    await using storage = await open(earlier.data)
    await earlier.expectAll(storage)
  })
})

describe('tables', () => {
  test.each<[string, (path: string) => Promise<void>]>([
    ['missing', (path) => rm(path)],
    ['empty', (path) => truncate(path)],
    ['cut off', (path) => truncate(path, 4096)],
    ['overwritten', async (path) => writeFile(path, (await readFile(path)).fill(7, 4096, 9000))],
    ['of something else', (path) => writeFile(path, 'hello'.repeat(2000))],
  ])('that are %s stop the start, which says what to do and changes nothing', async (_, damage) => {
    await using directory = await tempDirectory()
    const path = join(directory.path, 'tables.db')
    await (await open(directory.path))[Symbol.asyncDispose]()
    await cp(path, `${path}.backup`)
    await damage(path)
    const bytes = await readFile(path).catch(() => undefined)
    for (let again = 0; again < 2; again++)
      await expect(open(directory.path)).rejects.toThrow(/tables\.db .*Restore the data directory from a backup/)
    expect(await readFile(path).catch(() => undefined)).toEqual(bytes)
    await rename(`${path}.backup`, path)
    await (await open(directory.path))[Symbol.asyncDispose]()
  })

  test('are committed once for all that is written at the same time', async () => {
    await using directory = await tempDirectory()
    await using storage = await open(directory.path)
    const commits = async () => (await readFile(join(directory.path, 'tables.db'))).readUInt32BE(24)
    const before = await commits()
    const ids = Array.from({ length: 500 }, () => uuid7())
    await Promise.all(ids.map((id) => storage.deletions.mark(id)))
    expect((await storage.deletions.ids()).toSorted()).toEqual(ids.toSorted())
    expect((await commits()) - before).toBeLessThan(10)
  })

  test('are closed before the process that has written them ends', async () => {
    await using directory = await tempDirectory()
    const { stdout } = await promisify(execFile)(process.execPath, [
      join(import.meta.dirname, 'children/write-and-stop.ts'),
      directory.path,
    ])
    expect(stdout).toBe('disposed')
  })

  test('are written while the server works, and one write that is impossible does not stop the others', async () => {
    await using directory = await tempDirectory()
    await using storage = await open(directory.path)
    using other = new DatabaseSync(join(directory.path, 'tables.db'))
    other.exec('BEGIN IMMEDIATE')
    const [id, beside] = [uuid7(), uuid7()]
    let isWritten = false
    const all = Promise.allSettled([
      storage.deletions.mark(id),
      storage.apiKeys.change(1, null as unknown as string, 'a key without an id'),
      storage.deletions.mark(beside),
    ])
    void all.then(() => (isWritten = true))
    for (let turn = 0; turn < 1000; turn++) await yieldToLoop()
    expect(isWritten, 'another has the lock').toBe(false)
    other.exec('COMMIT')
    expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await storage.deletions.ids()).toSorted()).toEqual([id, beside].toSorted())
  })

  test('that were replaced while the server works are not written: only a start reads what is there', async () => {
    await using directory = await tempDirectory()
    const path = join(directory.path, 'tables.db')
    await using storage = await open(directory.path)
    await cp(path, `${path}.backup`)
    const [before, after] = [uuid7(), uuid7()]
    await storage.deletions.mark(before)
    await rename(`${path}.backup`, path)
    const change = () => storage.apiKeys.change(1, after, { id: after })
    for (let again = 0; again < 2; again++)
      await expect(change()).rejects.toMatchObject({
        code: 'storage_failed',
        message: expect.stringMatching(/replaced.*Restart the server/),
      })
    expect(rowsIn(directory.path, 'SELECT id FROM api_keys')).toEqual([])
  })
})

test('a limit of the size of files is reported as missing room, and loses nothing that was stored', async () => {
  await using directory = await tempDirectory()
  const child = join(import.meta.dirname, 'children/fill-tables.ts')
  const limited = ['-c', 'ulimit -S -f 256; exec "$0" "$@"', process.execPath, child, directory.path]
  const { stdout } = await promisify(execFile)('bash', limited)
  expect(JSON.parse(stdout)).toEqual({ isOutOfRoom: true, lost: 0 })
})
