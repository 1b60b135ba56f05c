/** API keys: made, found, rotated, revoked, and kept over a restart, in a real database. */
import { readFile, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { ApiKeys } from '../../src/access/api-keys.ts'
import { FileStorage } from '../../src/storage/files/file-storage.ts'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'

const READER = { name: 'dashboard', scopes: ['read' as const] }

async function bench() {
  const directory = await mkdtempDisposable(join(tmpdir(), 'keys-'))
  let now = Date.parse('2026-01-31T12:00:00.000Z')
  const clock = () => now
  const opened: AsyncDisposable[] = []
  return {
    path: join(directory.path, 'tables.db'),
    /** As a server does, after an earlier one has stopped, or next to it. */
    async open(): Promise<ApiKeys> {
      const storage = await openStorage(directory.path)
      const keys = await ApiKeys.open(storage.apiKeys, clock)
      opened.push(keys, storage)
      return keys
    },
    /** Two servers that share one storage. */
    async openTwo(): Promise<[ApiKeys, ApiKeys]> {
      const storage = await openStorage(directory.path)
      const both = [await ApiKeys.open(storage.apiKeys, clock), await ApiKeys.open(storage.apiKeys, clock)] as const
      opened.push(...both, storage)
      return [...both]
    },
    pass: (seconds: number) => (now += seconds * 1000),
    async [Symbol.asyncDispose](): Promise<void> {
      // They may still write when a key was last used.
      for (const each of opened) await each[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

const openStorage = (directory: string) =>
  FileStorage.openUnlocked({ directory, keys: { material: ['a key'], locked: 0 }, onFault: () => {} })

describe('an API key', () => {
  test('is found by the secret that was returned once, also after a restart, and by nothing else', async () => {
    await using here = await bench()
    const keys = await here.open()
    const { key, ...shown } = await keys.create({ ...READER, user_id: 'user-17' })
    expect(key).toMatch(/^ask_[\w-]{43}$/)
    expect(key.startsWith(shown.prefix)).toBe(true)
    for (const each of [keys, await here.open()]) {
      expect((await each.find(key))?.limits.userId).toBe('user-17')
      expect(await each.find(`${key}x`)).toBeUndefined()
      expect(await each.list()).toEqual([expect.objectContaining(shown)])
    }
  })

  test('is kept as a hash: neither the file nor a list has the secret', async () => {
    await using here = await bench()
    const keys = await here.open()
    const { key } = await keys.create(READER)
    const secret = key.slice('ask_'.length + 4)
    expect(await readFile(here.path, 'latin1')).not.toContain(secret)
    expect(JSON.stringify(await keys.list())).not.toContain(secret)
  })

  test('ends when it is revoked, together with its streams, and stays revoked after a restart', async () => {
    await using here = await bench()
    const keys = await here.open()
    const { key, id } = await keys.create(READER)
    const { ended } = (await keys.find(key))!
    await keys.revoke(id)
    expect(ended.aborted).toBe(true)
    for (const each of [keys, await here.open()]) expect(await each.find(key)).toBeUndefined()
    await expect(keys.revoke(id)).rejects.toMatchObject({ code: 'key_not_found' })
  })

  test('is not valid after expires_at, even if the timer is late', async () => {
    await using here = await bench()
    const keys = await here.open()
    const { key } = await keys.create({ ...READER, expires_at: '2026-01-31T13:00:30.000+01:00' })
    here.pass(29)
    expect(await keys.find(key)).toBeDefined()
    here.pass(1)
    expect(await keys.find(key)).toBeUndefined()
    expect(await (await here.open()).find(key)).toBeUndefined()
    for (const expires_at of ['2026-01-31T12:00:00Z', '9999-12-31T23:59:59-12:00'])
      await expect(keys.create({ ...READER, expires_at })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('ends its streams when it expires', async () => {
    await using here = await bench()
    const keys = await here.open()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
    const { key } = await keys.create({ ...READER, expires_at: '2026-01-31T12:00:30Z' })
    const { ended } = (await keys.find(key))!
    here.pass(29)
    vi.advanceTimersByTime(29_000)
    expect(ended.aborted).toBe(false)
    here.pass(1)
    vi.advanceTimersByTime(1000)
    expect(ended.aborted).toBe(true)
    expect(await keys.find(key)).toBeUndefined()
  })

  test('ends its streams within a minute after the clock was set past expires_at, or the machine was suspended', async () => {
    await using here = await bench()
    const keys = await here.open()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
    const { key } = await keys.create({ ...READER, expires_at: '2026-02-28T12:00:00Z' })
    const { ended } = (await keys.find(key))!
    vi.advanceTimersByTime(120_000)
    expect(ended.aborted).toBe(false)
    here.pass(28 * 24 * 3600)
    vi.advanceTimersByTime(60_000)
    expect(ended.aborted).toBe(true)
  })

  test('stays valid together with its successors for the overlap of its rotation, also when that is repeated', async () => {
    await using here = await bench()
    const keys = await here.open()
    const first = await keys.create({ ...READER, user_id: 'user-17' })
    const second = await keys.rotate(first.id, { overlap_seconds: 60 })
    expect(second.previous_valid_until).toBe('2026-01-31T12:01:00.000Z')
    const stillOpen = (await keys.find(first.key))!.ended
    expect(stillOpen.aborted).toBe(false)
    const third = await keys.rotate(first.id, { overlap_seconds: 60 })
    for (const { key } of [first, second, third]) expect(await keys.find(key)).toBeDefined()
    expect(stillOpen.aborted).toBe(false)
    here.pass(60)
    for (const each of [keys, await here.open()]) {
      for (const { key } of [first, second]) expect(await each.find(key)).toBeUndefined()
      expect((await each.find(third.key))?.limits.userId).toBe('user-17')
      expect((await each.get(first.id)).previous_valid_until).toBeUndefined()
    }
    const last = await keys.rotate(first.id, { overlap_seconds: 0 })
    expect([await keys.find(third.key), await keys.find(last.key)]).toEqual([undefined, expect.anything()])
  })

  test('reports when it was last used, also after a restart', async () => {
    await using here = await bench()
    {
      await using keys = await here.open()
      const { key, id } = await keys.create(READER)
      expect((await keys.get(id)).last_used_at).toBeUndefined()
      here.pass(5)
      await keys.find(key)
    }
    expect((await (await here.open()).list())[0]?.last_used_at).toBe('2026-01-31T12:00:05.000Z')
  })

  test('is not lost to changes at the same time', async () => {
    await using here = await bench()
    const keys = await here.open()
    const made = await Promise.all(Array.from({ length: 20 }, () => keys.create(READER)))
    await Promise.all(made.slice(0, 10).map(({ id }) => keys.revoke(id)))
    expect((await (await here.open()).list()).map(({ id }) => id)).toEqual(made.slice(10).map(({ id }) => id))
  })

  test('change that cannot be stored does not hold', async () => {
    await using here = await bench()
    const keys = await here.open()
    await rm(here.path)
    await expect(keys.create(READER)).rejects.toMatchObject({ code: 'storage_failed' })
    expect(await keys.list()).toEqual([])
  })

  test('that another server has made is found, and one that it has revoked does not come back with a rotation', async () => {
    await using here = await bench()
    const [one, other] = await here.openTwo()
    const { key, id } = await one.create(READER)
    expect(await other.find(key)).toBeDefined()
    await other.revoke(id)
    await expect(one.rotate(id, { overlap_seconds: 60 })).rejects.toMatchObject({ code: 'key_not_found' })
    await one.create(READER)
    expect([await one.find(key), await other.find(key), (await one.list()).length]).toEqual([undefined, undefined, 1])
  })

  test('that another server has just made can be read, rotated and revoked by its id', async () => {
    await using here = await bench()
    const [one, other] = await here.openTwo()
    const read = await one.create(READER)
    expect(await other.get(read.id)).toMatchObject({ id: read.id, name: READER.name })
    const rotated = await one.create(READER)
    const { key } = await other.rotate(rotated.id, { overlap_seconds: 0 })
    expect([await one.find(rotated.key), await one.find(key)]).toEqual([expect.anything(), expect.anything()])
    const revoked = await one.create(READER)
    await other.revoke(revoked.id)
    expect(await other.find(revoked.key)).toBeUndefined()
    await expect(one.revoke(revoked.id)).rejects.toMatchObject({ code: 'key_not_found' })
  })

  test('that is damaged stops the start and says what to do: revoked keys must not come back', async () => {
    await using here = await bench()
    await (await here.open()).create(READER)
    using tables = new DatabaseSync(here.path)
    tables.exec("UPDATE api_keys SET value = '{'")
    await expect(here.open()).rejects.toThrow(/is damaged\. Restore the data directory from a backup/)
  })
})
