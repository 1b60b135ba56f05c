/** What a real PostgreSQL refuses, and ends: appends wait where that helps, and otherwise say why they failed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { LostConnection } from '../../../src/storage/postgres/database-errors.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { PostgresSession } from '../../../src/storage/postgres/session.ts'
import { append, message, readAll, tempDirectory, textOf } from '../../events/fixtures.ts'
import { startCutProxy } from '../../support/cut-proxy.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase, programOf } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

async function openLog(url = database.url, onWarning?: (warning: string) => void) {
  const directory = await tempDirectory()
  const storage = await openPostgresStorage({
    url,
    directory: directory.path,
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    ...(onWarning && { onWarning }),
    onFault: () => {}, // what the tests cause
  })
  const own = storage.conversation(uuid7())
  await own.reserve()
  const log = await own.createLog({})
  return {
    storage,
    log,
    forClient: async (text: string) => await log.append([message(text)], { isForClient: true }),
    async [Symbol.asyncDispose]() {
      await storage[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

/** Has each append end with this error, from now on. */
const refuseWith = async (code: string) =>
  await database.query(`
    create or replace function refuse() returns trigger language plpgsql as
      $f$ begin raise exception 'refused' using errcode = '${code}'; end $f$;
    create or replace trigger refusal before insert on firehose for each row execute function refuse()`)
const refuseNoMore = async () => await database.query('drop trigger refusal on firehose')

const END_SESSIONS = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`

test('a value that cannot be sent is a defect of this program, and no outage that passes', async () => {
  const session = await PostgresSession.connect({ urls: [database.url] })
  const value: { itself?: unknown } = {}
  value.itself = value
  await expect(session.run('select $1::json', [value], 10_000)).rejects.toThrow(TypeError)
  await expect(session.run('select 1', [], 10_000), 'what it was doing is not known').rejects.toThrow(LostConnection)
})

test('sessions that an administrator ends (57P01) lose nothing and repeat nothing', async () => {
  await using opened = await openLog()
  const texts = Array.from({ length: 40 }, (_, i) => String(i))
  let ended: Promise<unknown> | undefined
  for (const [i, text] of texts.entries()) {
    const stored = append(opened.log, message(text))
    // Before, while or after the statement is executed.
    if (i % 3 === 0) ended = database.query(END_SESSIONS)
    await Promise.all([stored, ended])
  }
  expect((await readAll(opened.log)).map(textOf)).toEqual(texts)
})

test('a full disk of the database (53100) is storage_full, and the log stays usable', async () => {
  await using opened = await openLog()
  await refuseWith('53100')
  await expect(opened.forClient('refused')).rejects.toMatchObject({ code: 'storage_full' })
  await expect(append(opened.log, message('refused'))).rejects.toMatchObject({ code: 'storage_full' })
  await refuseNoMore()
  await append(opened.log, message('stored'))
  expect((await readAll(opened.log)).map(textOf)).toEqual(['stored'])
})

test('a log of which the database has lost the last event fails and says so, and is opened again as it is there', async () => {
  await using opened = await openLog()
  const { storage, log } = opened
  const id = log.conversationId
  await append(log, message('kept'))
  await append(log, message('lost'))
  // As a failover to a standby that lacks it.
  await database.query('delete from events where conversation_id = $1 and seq = 2', [id])
  await database.query('update conversations set head = 1 where id = $1', [id])
  await expect(append(log, message('after'))).rejects.toMatchObject({
    code: 'storage_failed',
    message: expect.stringMatching(/has 1 events of this conversation where 2 were stored/),
  })
  await log.close()
  const { log: again } = await storage.conversation(id).openLog()
  await append(again, message('again'))
  expect((await readAll(again)).map(textOf)).toEqual(['kept', 'again'])
})

test.each(['57014', '40001', '40P01', '55P03'])('an append that is cancelled with %s is repeated', async (code) => {
  await using opened = await openLog()
  await refuseWith(code)
  const stored = append(opened.log, message('stored'))
  // It has been refused: until then the trigger would not be in use.
  await Promise.race([stored, until('a refusal', async () => (await refusals()) > 0)])
  await refuseNoMore()
  await stored
  expect((await readAll(opened.log)).map(textOf)).toEqual(['stored'])
})

/** Transactions of this database that were rolled back. */
async function refusals(): Promise<number> {
  const [row] = await database.query('select xact_rollback from pg_stat_database where datname = current_database()')
  return Number(row?.['xact_rollback'])
}

test('a user without free connections (53300) waits for one', async () => {
  await database.query('create role few login superuser')
  const url = new URL(database.url)
  url.username = 'few'
  try {
    await using opened = await openLog(url.href)
    await database.query('alter role few nosuperuser connection limit 1')
    await database.query('grant all on all tables in schema public to few')
    await database.query('grant all on all sequences in schema public to few')
    await database.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'few' and datname = current_database()",
    )
    const stored = append(opened.log, message('stored'))
    const used = async () => {
      const [row] = await database.query("select count(*) as count from pg_stat_activity where usename = 'few'")
      return Number(row?.['count']) > 0
    }
    await until('a connection that is in use', used)
    await database.query('alter role few connection limit -1')
    await stored
    expect((await readAll(opened.log)).map(textOf)).toEqual(['stored'])
  } finally {
    await database.query('drop owned by few')
    await database.query('drop role few')
  }
})

test('a start warns if the standbys of the database can lack acknowledged events, and only then', async () => {
  const warnings: string[] = []
  const start = async () => await (await openLog(database.url, (text) => warnings.push(text)))[Symbol.asyncDispose]()
  await using directory = await tempDirectory()
  const { port } = new URL(database.url)
  const args = ['-D', directory.path, '-h', '127.0.0.1', '-p', port, '-U', 'postgres', '--no-password']
  const standby = spawn(programOf('pg_receivewal'), args, { stdio: 'ignore' })
  try {
    const isThere = async () =>
      (await database.query("select from pg_stat_replication where state = 'streaming'")).length > 0
    await until('a standby', isThere)
    await start()
    expect(warnings).toEqual([expect.stringContaining('no standby of the database is synchronous')])
  } finally {
    standby.kill()
    await once(standby, 'exit')
  }
  await until('no standby', async () => (await database.query('select from pg_stat_replication')).length === 0)
  await start()
  expect(warnings).toHaveLength(1)
})

test('a host that does not answer is skipped, and one that is read-only (25006) is waited for', async () => {
  await using other = await createDatabase()
  const { host, pathname } = new URL(database.url)
  const proxy = await startCutProxy(new URL(`http://${host}`))
  proxy.down()
  await using opened = await openLog(database.url.replace(host, `${new URL(proxy.url).host},${host}`))
  const name = pathname.slice(1)
  const alter = async (is: string) =>
    await other.query(`alter database ${name} set default_transaction_read_only = ${is}`)
  const sessions = async () => {
    const [row] = await other.query('select sessions from pg_stat_database where datname = $1', [name])
    return Number(row?.['sessions'])
  }
  await alter('on')
  const before = await sessions()
  await other.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  let isStored = false
  const stored = append(opened.log, message('stored')).then(() => (isStored = true))
  await until('tries', async () => (await sessions()) > before + 1)
  expect(isStored).toBe(false)
  await alter('off')
  await stored
  expect((await readAll(opened.log)).map(textOf)).toEqual(['stored'])
  await proxy.close()
})
