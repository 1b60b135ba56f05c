/** The replays of instances that share a real database. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { tempDirectory } from '../../events/fixtures.ts'
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
  const { replays, instances } = storage
  if (!replays || !instances) throw new Error('A shared storage has these tables.')
  return { replays, instances, [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose]() }
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
