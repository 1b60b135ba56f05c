/** The contracts of a storage and of its logs, on a real PostgreSQL; and what is true of the database alone. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { openFileStorage } from '../../../src/storage/files/file-storage.ts'
import { PostgresDatabase } from '../../../src/storage/postgres/database.ts'
import { beginIncarnation } from '../../../src/storage/postgres/incarnation.ts'
import { RowOwnership } from '../../../src/storage/postgres/ownership.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { PostgresStore } from '../../../src/storage/postgres/postgres-store.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { append, message, readAll, tempDirectory, textOf } from '../../events/fixtures.ts'
import { describeStore } from '../../events/store-contract.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { storageContract } from '../storage-contract.ts'

const KEYS = ['key of the operator'] as const

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const open = (directory: string, operatorKeys: readonly [string, ...string[]] = KEYS) =>
  openPostgresStorage({
    url: database.url,
    directory,
    operatorKeys,
    serverVersion: 'test',
    onFault(error) {
      throw error
    },
  })

/** Removes all rows and keeps the tables. */
const empty = async () => {
  const [tables] = await database.query(
    "select string_agg(quote_ident(relname), ', ') as names from pg_class where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace and relname not in ('schema_version', 'api_key_version', 'login_version', 'profile_version', 'database_identity')",
  )
  if (typeof tables?.['names'] === 'string') await database.query(`truncate ${tables['names']}`)
}

storageContract(
  'The PostgreSQL storage',
  async () => {
    const directory = await tempDirectory()
    return {
      open: (keys) => open(join(directory.path, 'data'), keys),
      async [Symbol.asyncDispose]() {
        await empty()
        await directory[Symbol.asyncDispose]()
      },
    }
  },
  { refusesOtherKeys: true },
)

describe('Its logs', () => {
  let connections: PostgresDatabase
  let owner: number

  beforeAll(async () => {
    await using directory = await tempDirectory()
    await (await open(directory.path))[Symbol.asyncDispose]()
    connections = new PostgresDatabase({ url: database.url, outageMs: 1000 })
    const session = await connections.connect()
    owner = (await beginIncarnation(session, 'test', 'alone')).id
    await session.end()
  })
  afterAll(() => connections[Symbol.asyncDispose]())

  describeStore('The PostgreSQL store', async (now) => {
    const make = () => new PostgresStore({ ownership: new RowOwnership(connections, owner), now })
    return { store: make(), restart: make, [Symbol.asyncDispose]: () => Promise.resolve() }
  })
})

test('a second instance is refused, on another machine, too, and does not disturb the first', async () => {
  await using directory = await tempDirectory()
  await using first = await open(join(directory.path, 'first'))
  const own = first.conversation(uuid7())
  await own.reserve()
  const log = await own.createLog({})
  await append(log, message('before'))
  await expect(open(join(directory.path, 'second'))).rejects.toThrow(/in use by another instance.*process \d+/s)
  await append(log, message('after'))
  expect((await readAll(log)).map(textOf)).toEqual(['before', 'after'])
})

test('a data directory keeps to the database that has its conversations, and one with files to its files', async () => {
  await using place = await tempDirectory()
  const [withDatabase, withFiles] = [join(place.path, 'database'), join(place.path, 'files')]
  const openFiles = (directory: string) => openFileStorage({ directory, operatorKeys: KEYS, onFault: () => {} })
  const use = async (storage: Storage) => await storage[Symbol.asyncDispose]()
  await use(await open(withDatabase))
  await use(await openFiles(withFiles))

  await expect(openFiles(withDatabase)).rejects.toThrow(/are in a PostgreSQL database\. Set OPENHANDS_DATABASE_URL/)
  await expect(open(withFiles)).rejects.toThrow(/was used without a database.*Start without OPENHANDS_DATABASE_URL/)
  await using other = await createDatabase()
  const wrong = {
    url: other.url,
    directory: withDatabase,
    operatorKeys: KEYS,
    serverVersion: 'test',
    onFault: () => {},
  }
  await expect(openPostgresStorage(wrong)).rejects.toThrow(/belongs to another database/)
  const tables = "select from pg_class where relnamespace = 'public'::regnamespace"
  expect(await other.query(tables), 'nothing is written to the wrong database').toEqual([])

  // What is refused is not locked, and unchanged.
  await use(await open(withDatabase))
  await use(await openFiles(withFiles))
})

test('a database that a newer server has written is refused, and not changed', async () => {
  await using directory = await tempDirectory()
  await using own = await createDatabase()
  const options = { url: own.url, operatorKeys: KEYS, serverVersion: 'test', onFault: () => {} }
  const start = async () => await openPostgresStorage({ ...options, directory: directory.path })
  await (await start())[Symbol.asyncDispose]()
  await own.query('update schema_version set version = 1000')
  await expect(start()).rejects.toThrow(/version 1000, which a newer server has written/)
  expect(await own.query('select version from schema_version')).toEqual([{ version: 1000 }])
})

test('what another instance has taken over stores nothing more here, says why, and announces it once', async () => {
  await using directory = await tempDirectory()
  await using own = await createDatabase()
  const options = { directory: directory.path, operatorKeys: KEYS, serverVersion: 'test', onFault: () => {} }
  await using storage = await openPostgresStorage({ ...options, url: own.url, renewMs: 50 })
  const conversation = storage.conversation(uuid7())
  await conversation.reserve()
  const log = await conversation.createLog({})
  await append(log, message('before'))
  expect([storage.availability.takenOver.aborted, storage.availability.answers()]).toEqual([false, true])

  await own.query('update incarnations set ended_at = now()')
  await expect(append(log, message('after')), 'also before it is announced').rejects.toMatchObject({
    code: 'storage_unavailable',
  })
  await until('the announcement', () => Promise.resolve(storage.availability.takenOver.aborted))
  expect(String(storage.availability.takenOver.reason)).toContain('Another server has taken over the database')
  for (const use of [() => append(log, message('later')), () => storage.ids(), () => storage.due.set(conversation.id)])
    await expect(use()).rejects.toMatchObject({ code: 'storage_unavailable' })
  expect((await own.query('select from events')).length).toBe(1)
})
