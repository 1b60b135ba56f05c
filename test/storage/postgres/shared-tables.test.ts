/** What instances that share a real database know of each other, and of the conversations and replays of each. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { message, tempDirectory } from '../../events/fixtures.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase } from '../../support/postgres.ts'

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

async function start() {
  const storage = await openPostgresStorage({
    url: database.url,
    directory: join(place.path, uuid7()),
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault: () => {},
  })
  const { replays, instances, shared, tickets } = storage
  if (!replays || !instances || !shared || !tickets) throw new Error('A shared storage has these tables.')
  return { storage, replays, instances, shared, tickets, [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose]() }
}

const replay = (id: string, name: string, forks: readonly string[] = []) => ({
  id,
  forks,
  text: JSON.stringify({ replay: { id, name, rows: ['a row'] } }),
})
const nameIn = (text: string | undefined): unknown =>
  text === undefined ? undefined : (JSON.parse(text) as { replay: { name: unknown } }).replay.name

test('a replay is that of the instance that made it, and of another one when that has ended', async () => {
  const own = await start()
  await using other = await start()
  const [first, second, fork] = [uuid7(), uuid7(), uuid7()]
  await own.instances.announce('10.0.0.1:80', {})
  expect(await own.replays.create({ ...replay(first, 'one'), key: 'k' })).toBeUndefined()
  expect(await own.replays.create({ ...replay(second, 'two', [fork]), key: undefined })).toBeUndefined()
  expect(nameIn(await other.replays.create({ ...replay(uuid7(), 'again'), key: 'k' }))).toBe('one')
  expect(await other.replays.forks()).toEqual([fork])

  expect(nameIn(await other.replays.read({ id: second }))).toBe('two')
  expect(nameIn(await other.replays.read({ key: 'k' }))).toBe('one')
  expect([await other.replays.read({ id: fork }), await other.replays.read({ key: 'l' })]).toEqual([
    undefined,
    undefined,
  ])
  const page = await other.replays.page(undefined)
  expect(page.map(({ id }) => id)).toEqual([second, first])
  expect(JSON.parse(page[0]!.text)).toEqual({ replay: { id: second, name: 'two', rows: [] } })
  expect((await other.replays.page(second)).map(({ id }) => id)).toEqual([first])
  expect(await other.replays.page(first)).toEqual([])

  expect(await other.replays.otherOwnerOf(first)).toEqual({ instance: expect.any(Number), address: '10.0.0.1:80' })
  expect(await own.replays.otherOwnerOf(first)).toBeUndefined()
  await expect(other.replays.write(replay(first, 'stolen'))).rejects.toMatchObject({ code: 'storage_unavailable' })
  await other.replays.remove(first)
  await own.replays.write(replay(first, 'changed', [fork]))
  expect(nameIn(await other.replays.read({ key: 'k' }))).toBe('changed')
  expect([await other.replays.orphans(), await other.replays.adopt([first])]).toEqual([[], []])

  await own[Symbol.asyncDispose]()
  expect((await other.replays.orphans()).toSorted()).toEqual([first, second])
  expect(await other.replays.otherOwnerOf(first)).toBeUndefined()
  expect((await other.replays.adopt([first])).map(nameIn)).toEqual(['changed'])
  expect(await other.replays.orphans()).toEqual([second])
  await other.replays.remove(first)
  expect([await other.replays.read({ id: first }), await other.replays.read({ key: 'k' })]).toEqual([
    undefined,
    undefined,
  ])
  expect(await other.replays.create({ ...replay(uuid7(), 'new'), key: 'k' })).toBeUndefined()
})

test('an instance knows the others that live and have an address, and what each of them has', async () => {
  const own = await start()
  await using other = await start()
  const [id, key] = [uuid7(), uuid7()]
  expect(await other.instances.others()).toEqual([])
  await own.instances.announce('10.0.0.1:80', { a: 'hash' })
  await other.instances.announce('10.0.0.2:80', {})
  const peer = { instance: own.instances.own, address: '10.0.0.1:80' }
  expect(await other.instances.others()).toEqual([{ ...peer, settings: { a: 'hash' } }])
  expect(await other.instances.successor()).toEqual(peer)

  expect(await own.shared.claimKey({ key, bodyHash: 'h', id })).toBeUndefined()
  expect(await other.instances.ownerOfKey(key)).toEqual(peer)
  expect(await other.instances.ownerOfKey('unknown')).toBeUndefined()
  const conversation = own.storage.conversation(id)
  await conversation.reserve()
  const log = await conversation.createLog({})
  expect(await other.shared.listed(id)).toBeUndefined()
  const before = await other.shared.position()
  await log.append([message('a'), message('b')])
  expect(await other.instances.otherOwnerOf(id)).toEqual(peer)
  for (const unknown of [uuid7(), 'no id']) expect(await other.instances.otherOwnerOf(unknown)).toBeUndefined()
  expect(await own.instances.otherOwnerOf(id)).toBeUndefined()
  const found = { id, lastSeq: 2, updatedAt: expect.any(Number) }
  expect(await other.shared.listed(id)).toEqual(found)
  expect(await other.shared.listed('no id')).toBeUndefined()
  await expect.poll(async () => (await other.shared.changes(before)).changed).toEqual([found])
  const all = await Array.fromAsync(other.shared.all())
  expect(all.flat()).toEqual([found])
  expect(await other.shared.claimKey({ key, bodyHash: 'h', id: uuid7() })).toMatchObject({
    id,
    bodyHash: 'h',
    isMade: true,
  })
  expect(await other.instances.ended([own.instances.own, other.instances.own])).toEqual([])
  expect(await other.shared.remains()).toEqual({ created: [], deleted: [] })

  await own.instances.leave()
  expect(await other.instances.successor()).toBeUndefined()
  expect(await other.instances.others()).toHaveLength(1)
  const left = uuid7()
  await own.storage.conversation(left).reserve()
  await own[Symbol.asyncDispose]()
  expect(await other.instances.others()).toEqual([])
  expect(await other.instances.otherOwnerOf(id)).toBeUndefined()
  expect(await other.instances.ended([own.instances.own, other.instances.own])).toEqual([own.instances.own])
  expect(await other.shared.remains()).toEqual({ created: [left], deleted: [] })
})

test('a stream ticket is for one caller, for its time, and a holder has only so many', async () => {
  await using own = await start()
  await using other = await start()
  const limits = { lifetimeMs: 3_600_000, mostOfHolder: 2 }
  const add = (hash: string, more: Partial<typeof limits> = {}) =>
    own.tickets.add({ hash, holder: 'ada', value: `of ${hash}` }, { ...limits, ...more })
  for (const hash of ['a', 'b', 'c']) await add(hash)
  await add('late', { lifetimeMs: 0, mostOfHolder: 9 })
  const taken = await Promise.all(['a', 'b', 'c', 'late', 'unknown'].map((hash) => other.tickets.take(hash)))
  expect(taken).toEqual([undefined, 'of b', 'of c', undefined, undefined])
  expect(await own.tickets.take('b')).toBeUndefined()
})
