/** The storage through a real PgBouncer, which gives each transaction another connection, or each client its own. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import type { PostgresStorageOptions } from '../../../src/storage/postgres/postgres-storage.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { append, message, readAll, tempDirectory, textOf } from '../../events/fixtures.ts'
import type { TestPooler } from '../../support/pgbouncer.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
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

const open = (options: Pick<PostgresStorageOptions, 'url'> & Partial<PostgresStorageOptions>) =>
  openPostgresStorage({
    directory: join(place.path, uuid7()),
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault(error) {
      throw error
    },
    ...options,
  })

describe('in transaction mode', () => {
  let pooler: TestPooler

  beforeAll(async () => {
    pooler = await startPgBouncer(database, 'transaction')
  })
  afterAll(() => pooler[Symbol.asyncDispose]())

  test('a start without another URL for sessions is refused', async () => {
    for (const sharing of ['alone', 'shared'] as const)
      await expect(open({ url: pooler.url, sharing })).rejects.toThrow(/Set OPENHANDS_DATABASE_SESSION_URL/)
    // It has left no lock in a connection of the pooler.
    const storage = await open({ url: database.url, sharing: 'alone' })
    await storage[Symbol.asyncDispose]()
  })

  test('a start whose URLs lead to different databases is refused', async () => {
    await using other = await createDatabase()
    await expect(open({ url: pooler.url, sessionUrl: other.url })).rejects.toThrow(/lead to different databases/)
    await using storage = await open({ url: other.url })
    const through = new URL(pooler.url)
    through.pathname = new URL(other.url).pathname
    await using same = await open({ url: through.href, sessionUrl: other.url })
    expect(await same.ids()).toEqual(await storage.ids())
  })

  test('two instances append, read, write, and learn what the other one does, and no setting of a session is left to others', async () => {
    const urls = { url: pooler.url, sessionUrl: database.url }
    await using one = await open(urls)
    await using other = await open(urls)
    let news = 0
    await using firehose = await other.firehose.open(() => (news += 1))
    const own = [one, other].map((storage) => ({ storage, made: storage.conversation(uuid7()) }))
    const logs = await Promise.all(
      own.map(async ({ made }) => {
        await made.reserve()
        return await made.createLog({ env: { TOKEN: made.id } })
      }),
    )
    const texts = Array.from({ length: 50 }, (_, n) => String(n))
    for (const text of texts)
      await Promise.all(
        logs.map(async (log, at) => {
          await append(log, message(text))
          await own[at]!.storage.due.set(log.conversationId)
          await own[at]!.storage.snapshots.write(log.conversationId, { text })
        }),
      )
    for (const log of logs) expect((await readAll(log, 1000)).map(textOf)).toEqual(texts)
    for (const { made } of own) expect(await made.readSecrets()).toEqual({ env: { TOKEN: made.id } })
    await using view = await other.view(own[0]!.made.id)
    expect((await readAll(view, 1000)).map(textOf)).toEqual(texts)
    await until('news of the other instance', () => Promise.resolve(news > 1))
    expect(firehose).toBeDefined()
    await Promise.all([one.settled(), other.settled()])
    const client = await open(urls)
    await client[Symbol.asyncDispose]()
    const commits = await settingsThrough(pooler, 'synchronous_commit')
    expect(new Set(commits)).toEqual(new Set(['on']))
  })
})

test('in session mode, one URL is enough', async () => {
  await using pooler = await startPgBouncer(database, 'session')
  await using storage = await open({ url: pooler.url })
  const own = storage.conversation(uuid7())
  await own.reserve()
  const log = await own.createLog({ env: { TOKEN: 'a' } })
  await append(log, message('first'))
  expect((await readAll(log)).map(textOf)).toEqual(['first'])
})

/** The value in each connection of the pooler. */
async function settingsThrough(pooler: TestPooler, name: string): Promise<unknown[]> {
  const { Client } = await import('pg')
  const clients = Array.from({ length: 3 }, () => new Client({ connectionString: pooler.url }))
  try {
    return await Promise.all(
      clients.map(async (client) => {
        await client.connect()
        // They hold their connections at the same time.
        const { rows } = await client.query<Record<string, unknown>>(
          `select current_setting('${name}') as value, pg_sleep(0.2)`,
        )
        return rows[0]?.['value']
      }),
    )
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}
