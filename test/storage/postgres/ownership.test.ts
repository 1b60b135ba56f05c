/** Two storages on one real database: which of them has a conversation, and what the other one can still write. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVENT_VERSION } from '../../../src/contract/events/event.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import type { PostgresStorageOptions } from '../../../src/storage/postgres/postgres-storage.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import type { ConversationStorage, Storage } from '../../../src/storage/storage.ts'
import { append, message, readAll, tempDirectory, textOf } from '../../events/fixtures.ts'
import { startCutProxy } from '../../support/cut-proxy.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

let database: TestDatabase
let place: Awaited<ReturnType<typeof tempDirectory>>

beforeAll(async () => {
  database = await createDatabase()
  place = await tempDirectory()
})
afterAll(async () => {
  await place[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** As it is when a server is stopped or cut off: it raises no counter. */
const SILENT = { renewMs: 3_600_000, ttlMs: 3_600_000 }
const WATCHING = { renewMs: 100, ttlMs: 1500 }

const start = (options: Partial<PostgresStorageOptions> = {}) =>
  openPostgresStorage({
    url: database.url,
    directory: join(place.path, uuid7()),
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault: () => {}, // the end of one of them
    ...options,
  })

const create = async (storage: Storage) => {
  const own = storage.conversation(uuid7())
  await own.reserve()
  const log = await own.createLog({ env: { TOKEN: 'first' } })
  await append(log, message('first'))
  return { id: own.id, own, log }
}

const command = { id: 'command', keyHash: undefined }

/** Everything that an instance stores beside the log. */
const otherWrites = (storage: Storage, own: ConversationStorage): Record<string, () => Promise<unknown>> => ({
  secrets: () => own.writeSecrets({ env: { TOKEN: 'late' } }),
  callbacks: () => own.callbacks.write({ late: true }),
  command: () => own.commands.write(command, { late: true }, { durable: true }),
  snapshot: () => storage.snapshots.write(own.id, { late: true }),
  active: () => storage.active.set(own.id),
  due: () => storage.due.set(own.id),
  deletion: () => storage.deletions.mark(own.id),
})

async function expectNoWrite(storage: Storage, own: ConversationStorage): Promise<void> {
  for (const [name, write] of Object.entries(otherWrites(storage, own)))
    await expect(write(), name).rejects.toMatchObject({ code: 'storage_unavailable' })
}

test('instances that share a database start at the same time, and one that wants it alone is refused', async () => {
  const first = await start()
  await using second = await start()
  await first[Symbol.asyncDispose]()
  await expect(start({ sharing: 'alone' })).rejects.toThrow(/in use by another instance/)
  const { id } = await create(second)
  expect(await second.ids()).toContain(id)
})

test('an instance that shares is refused by one that is alone', async () => {
  await using own = await createDatabase()
  await using _alone = await start({ url: own.url, sharing: 'alone' })
  await expect(start({ url: own.url })).rejects.toThrow(/in use by another instance/)
})

test('a conversation is open in one living instance: another one can read it, and neither open, write nor remove it', async () => {
  await using first = await start()
  await using second = await start()
  const { id, log } = await create(first)
  await first.active.set(id)
  const there = second.conversation(id)

  await expect(there.openLog()).rejects.toMatchObject({ code: 'storage_unavailable' })
  await expectNoWrite(second, there)
  expect([await first.active.ids(), await second.active.ids()]).toEqual([[id], []])
  await second.active.clear(id)
  await there.remove()
  await there.discard()

  await append(log, message('second'))
  expect((await readAll(log)).map(textOf)).toEqual(['first', 'second'])
  await using view = await second.view(id)
  expect((await readAll(view)).map(textOf)).toEqual(['first', 'second'])
  expect(await first.active.ids()).toEqual([id])
})

test('a conversation that is being created is not removed by another instance', async () => {
  await using first = await start()
  await using second = await start()
  const own = first.conversation(uuid7())
  await own.reserve()
  await second.conversation(own.id).remove()
  await append(await own.createLog({}), message('first'))
  expect(await own.exists()).toBe(true)
})

test('a conversation that was released at rest is opened by any instance, which knows that nothing was begun', async () => {
  await using first = await start()
  await using second = await start()
  const { id, own, log } = await create(first)
  await log.close()
  await own.release()

  const opened = await second.conversation(id).openLog()
  expect(opened.isReleased).toBe(true)
  expect(await second.conversation(id).readSecrets()).toEqual({ env: { TOKEN: 'first' } })
  await expect(own.openLog()).rejects.toMatchObject({ code: 'storage_unavailable' })
  await expectNoWrite(first, own)
  await own.release()
  await append(opened.log, message('second'))
  await opened.log.close()
  expect((await second.conversation(id).openLog()).isReleased, 'something was appended').toBe(false)
})

test('one of two instances that open a released conversation at the same time gets it', async () => {
  await using first = await start()
  await using second = await start()
  for (let round = 0; round < 5; round++) {
    const { id, own, log } = await create(first)
    await log.close()
    await own.release()
    const opened = await Promise.allSettled([first, second].map((storage) => storage.conversation(id).openLog()))
    expect(opened.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  }
})

test('an instance that raises no counter for the TTL is ended, its conversations are open to others, and it writes nothing more', async () => {
  await using own = await createDatabase()
  let fenced = 0
  const metrics = { fenced: () => (fenced += 1), databaseAnswered: () => {}, suspended: () => {} }
  await using first = await start({ url: own.url, ...SILENT, metrics })
  await using second = await start({ url: own.url, ...WATCHING })
  const { id, log } = await create(first)
  await append(log, message('second'))
  await until('the end of the first one', async () => {
    const rows = await own.query('select from incarnations where ended_at is not null')
    return rows.length === 1
  })

  const { log: next, isReleased } = await second.conversation(id).openLog()
  expect([next.head, next.epoch > log.epoch, isReleased]).toEqual([2, true, false])
  expect(await log.append([message('late')])).toEqual({ kind: 'fenced' })
  expect(fenced).toBe(1)
  await expect(create(first)).rejects.toMatchObject({ code: 'storage_unavailable' })
  await expectNoWrite(first, first.conversation(id))
  await append(next, message('third'))
  expect((await readAll(next)).map(textOf)).toEqual(['first', 'second', 'third'])
  expect(await second.conversation(id).readSecrets()).toEqual({ env: { TOKEN: 'first' } })
})

test('an instance that was ended while it was silent learns it with its next renewal', async () => {
  await using own = await createDatabase()
  await using first = await start({ url: own.url, renewMs: 50 })
  await own.query('update incarnations set ended_at = now()')
  await until('the announcement', () => Promise.resolve(first.availability.takenOver.aborted))
  expect(String(first.availability.takenOver.reason)).toContain('Another instance has ended this one')
})

test('an instance is not ready while its lease is not held, long before requests are refused', async () => {
  await using own = await createDatabase()
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${own.port}`))
  const url = new URL(own.url)
  url.port = new URL(proxy.url).port
  const instance = await start({ url: url.href, renewMs: 50, ttlMs: 1000, outageMs: 600_000 })
  const { answers, lease } = instance.availability
  await until('an answer', () => Promise.resolve(answers()))
  proxy.down()
  await until('a storage that is not ready', () => Promise.resolve(!answers()))
  expect(lease?.isHeld).toBe(false)
  proxy.up()
  await until('an answer', () => Promise.resolve(answers()))
  await instance[Symbol.asyncDispose]()
  await proxy.close()
})

test('a database that takes a fifth of the TTL for each statement suspends nobody', async () => {
  await using own = await createDatabase()
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${own.port}`))
  const url = new URL(own.url)
  url.port = new URL(proxy.url).port
  // Long enough that a slow machine, which adds to the time of each statement, does not reach it.
  const ttlMs = 15_000
  const instance = await start({ url: url.href, renewMs: 100, ttlMs })
  const counter = async () => Number((await own.query('select counter::int from incarnations'))[0]?.['counter'])
  // Each way takes half of it.
  proxy.slow(ttlMs / 10)
  const before = await counter()
  let isSuspended = false
  await until('renewals for longer than the TTL', async () => {
    isSuspended ||= !instance.availability.lease!.isHeld
    return (await counter()) > before + 5
  })
  expect(isSuspended).toBe(false)
  proxy.up()
  await instance[Symbol.asyncDispose]()
  await proxy.close()
})

test('an instance whose pooler is away is not ready, and is ended, although it reaches the database for its session', async () => {
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
  const pooledUrl = new URL(database.url)
  pooledUrl.port = new URL(proxy.url).port
  const urls = { url: pooledUrl.href, sessionUrl: database.url }
  const first = await start({ ...WATCHING, ...urls, outageMs: 300 })
  const { id, log } = await create(first)
  await until('an answer', () => Promise.resolve(first.availability.answers()))
  proxy.down()
  await until('a storage that is not ready', () => Promise.resolve(!first.availability.answers()))
  proxy.up()
  await until('an answer', () => Promise.resolve(first.availability.answers()))
  expect(first.availability.takenOver.aborted, 'nobody watched it').toBe(false)
  await append(log, message('second'))

  await using second = await start(WATCHING)
  proxy.down()
  await until('the end of the first', () => Promise.resolve(first.availability.takenOver.aborted))
  expect(first.availability.lease?.isHeld).toBe(false)
  const opened = await second.conversation(id).openLog()
  expect((await readAll(opened.log)).map(textOf)).toEqual(['first', 'second'])
  await first[Symbol.asyncDispose]()
  await proxy.close()
})

test('an instance that renews is never ended, and one that stops frees its conversations at once', async () => {
  await using own = await createDatabase()
  // Long enough that a slow machine, on which renewals come late, does not reach it.
  const [renewMs, ttlMs] = [200, 6000]
  await using second = await start({ url: own.url, renewMs, ttlMs })
  const first = await start({ url: own.url, renewMs })
  const { id } = await create(first)
  await until('renewals for twice the TTL', async () => {
    const [row] = await own.query('select counter::int from incarnations order by id desc limit 1')
    return Number(row?.['counter']) > (2 * ttlMs) / renewMs
  })
  await expect(second.conversation(id).openLog()).rejects.toMatchObject({ code: 'storage_unavailable' })
  await first[Symbol.asyncDispose]()
  expect((await second.conversation(id).openLog()).log.head).toBe(1)
})

test('what a living instance is just making is nothing that another one finds, and its remains are', async () => {
  await using other = await start()
  const id = uuid7()
  {
    await using maker = await start()
    const own = maker.conversation(id)
    await own.reserve()
    await own.markCopying()
    expect([await maker.ids(), await other.ids()].map((ids) => ids.includes(id))).toEqual([true, false])
  }
  expect(await other.ids()).toContain(id)
})

test('a key whose create another instance has executed says where its conversation is, while that one lives', async () => {
  const former = await start(SILENT)
  await using asking = await start(SILENT)
  const { id } = await create(former)
  const claim = { key: 'key', bodyHash: 'hash', id }
  expect(await former.shared!.claimKey(claim)).toBeUndefined()
  const asked = { ...claim, id: uuid7() }
  expect(await asking.shared!.claimKey(asked)).toMatchObject({ id, isMade: true, isElsewhere: true })
  expect(await former.shared!.claimKey(asked)).toMatchObject({ id, isMade: true, isElsewhere: false })
  await former[Symbol.asyncDispose]()
  expect(await asking.shared!.claimKey(asked)).toMatchObject({ id, isMade: true, isElsewhere: false })
})

test('a key that was freed after its conversation was deleted belongs to the next create, at any instance', async () => {
  await using first = await start(SILENT)
  await using second = await start(SILENT)
  const { id, log } = await create(first)
  const claim = { key: 'freed', bodyHash: 'hash', id }
  expect(await first.shared!.claimKey(claim)).toBeUndefined()
  await log.close()
  await first.deletions.mark(id)
  const next = { ...claim, id: uuid7() }
  expect(await second.shared!.claimKey(next)).toMatchObject({ id, isMade: true })
  await first.shared!.freeKey(claim)
  expect(await second.shared!.claimKey(next)).toBeUndefined()
  await first.shared!.freeKey(claim)
  expect(await first.shared!.claimKey(claim), 'the key of another conversation is not freed').toMatchObject({
    id: next.id,
  })
})

test('an instance leaves a conversation with events that it does not know to one that does', async () => {
  const former = await start(SILENT)
  await using asking = await start(SILENT)
  const createIn = async (version: number) => {
    const { id, log } = await create(former)
    await former.active.set(id)
    const listed = { after: () => listed, row: { version } }
    log.listWith!(listed)
    await append(log, message('second'))
    return id
  }
  const known = await createIn(EVENT_VERSION)
  const unknown = await createIn(EVENT_VERSION + 1)
  await database.query('update incarnations set ended_at = now() where id = $1', [former.instances!.own])
  const orphans = await asking.instances!.orphans(100, [])
  expect(orphans.filter((id) => [known, unknown].includes(id))).toEqual([known])
  expect((await asking.active.ids()).filter((id) => [known, unknown].includes(id))).toEqual([known])
  expect(await asking.instances!.isOrphan(unknown), 'its readers wait for the instance that takes it').toBe(true)
  await former[Symbol.asyncDispose]()
})
