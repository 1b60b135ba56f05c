/** Stream tickets and login codes of two instances on one real database: each is valid at either of them, once, as long as its key lives. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { ApiKeys } from '../../src/access/api-keys.ts'
import { Logins } from '../../src/access/logins.ts'
import { SharedTickets } from '../../src/access/shared-tickets.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../src/storage/postgres/postgres-storage.ts'
import { tempDirectory } from '../events/fixtures.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const ID = uuid7()
const STREAM = { conversationId: ID }
const FIREHOSE = { conversationId: undefined }
const INVALID = expect.objectContaining({ code: 'unauthorized' })
const ofConversation = { conversation_id: ID, scopes: ['read' as const] }
const ofFirehose = { firehose: true as const, scopes: ['read' as const] }

type Instance = Awaited<ReturnType<typeof openInstance>>
const opened = new AsyncDisposableStack()
let database: TestDatabase
let here: Instance
let there: Instance

async function openInstance() {
  const place = opened.use(await tempDirectory())
  const storage = opened.use(
    await openPostgresStorage({
      url: database.url,
      directory: join(place.path, uuid7()),
      operatorKeys: ['key of the operator'],
      serverVersion: 'test',
      sharing: 'shared',
      onFault: () => {},
    }),
  )
  const apiKeys = opened.use(await ApiKeys.open(storage.apiKeys))
  apiKeys.watch()
  const logins = opened.use(
    await Logins.open({
      table: storage.logins,
      apiKeys,
      masterHashes: ['hash of the master key'],
      hashMaster: (key) => `hash of ${key}`,
      isShared: true,
      codeTable: storage.tickets,
    }),
  )
  const tickets = new SharedTickets({ table: storage.tickets!, apiKeys, logins: { open: async () => logins } })
  return { apiKeys, logins, tickets }
}

beforeAll(async () => {
  database = opened.use(await createDatabase())
  here = await openInstance()
  there = await openInstance()
})
afterAll(() => opened.disposeAsync())

async function createKey() {
  const { id, key } = await here.apiKeys.create({ name: 'dashboard', scopes: ['read', 'write'], user_id: 'user-17' })
  return { id, key, access: (await here.apiKeys.find(key))! }
}

test('a ticket works once, at any instance, and with no more rights than it was issued for', async () => {
  const { access } = await createKey()
  for (const redeemer of [here, there]) {
    const { ticket } = await here.tickets.issue(access, ofConversation)
    const redeemed = await redeemer.tickets.redeem(ticket, STREAM)
    expect(redeemed).toMatchObject({ key: { name: 'dashboard' }, scopes: ['read'], limits: { userId: 'user-17' } })
    expect(redeemed.sees({ id: uuid7(), userId: 'user-17' })).toBe(false)
    for (const { tickets } of [here, there]) await expect(tickets.redeem(ticket, STREAM)).rejects.toThrow(INVALID)
  }
  const { ticket } = await here.tickets.issue(Access.master(), ofFirehose)
  await expect(there.tickets.redeem(ticket, STREAM)).rejects.toThrow(INVALID)
  await expect(there.tickets.redeem(ticket, FIREHOSE)).rejects.toThrow(INVALID)
})

test('a ticket of a file is for that file alone, at any instance, and allows no other scope', async () => {
  const access = Access.master()
  const issue = () => here.tickets.issue(access, { ...ofConversation, file: 'a.txt' })
  const redeemed = await there.tickets.redeem((await issue()).ticket, { ...STREAM, file: 'a.txt' })
  expect(redeemed.scopes).toEqual(['files'])
  for (const target of [STREAM, FIREHOSE, { ...STREAM, file: 'b.txt' }])
    await expect(there.tickets.redeem((await issue()).ticket, target)).rejects.toThrow(INVALID)
})

test('a ticket ends with its key, also when that is rotated, and the streams of a used one end everywhere', async () => {
  const { id, access } = await createKey()
  const [used, unused] = [
    await here.tickets.issue(access, ofConversation),
    await here.tickets.issue(access, ofConversation),
  ]
  const redeemed = await there.tickets.redeem(used.ticket, STREAM)
  await here.apiKeys.rotate(id, { overlap_seconds: 0 })
  await until('the end of the stream', async () => redeemed.ended.aborted)
  await expect(there.tickets.redeem(unused.ticket, STREAM)).rejects.toThrow(INVALID)
  await expect(here.tickets.issue(access, ofConversation)).rejects.toThrow(INVALID)
})

test('a ticket of a login ends with the login at another instance', async () => {
  const origin = { kind: 'master' as const, hash: 'hash of the master key' }
  const made = await here.logins.create({ origin, access: Access.master(), scopes: ['read'], userAgent: undefined })
  const access = (await here.logins.find(made.value, [made.cookie]))!
  const [used, unused] = [await here.tickets.issue(access, ofFirehose), await here.tickets.issue(access, ofFirehose)]
  const redeemed = await there.tickets.redeem(used.ticket, FIREHOSE)
  expect([redeemed.loginId, redeemed.scopes]).toEqual([made.login.id, ['read']])
  await here.logins.end(access, made.login.id)
  await until('the end of the stream', async () => redeemed.ended.aborted)
  await expect(there.tickets.redeem(unused.ticket, FIREHOSE)).rejects.toThrow(INVALID)
})

test('an expired ticket is invalid, its row is removed by later ones, and each key has at most 1000 unused ones', async () => {
  const { access } = await createKey()
  const first = await here.tickets.issue(access, ofFirehose)
  const second = await here.tickets.issue(access, ofFirehose)
  const rows = "select $1 || n, $2, '{}', now() + interval '1 minute' from generate_series(1, 998) n"
  await database.query(`insert into stream_tickets (hash, holder, value, expires_at) ${rows}`, ['of ', access.key!.id])
  await here.tickets.issue(access, ofFirehose)
  await expect(there.tickets.redeem(first.ticket, FIREHOSE)).rejects.toThrow(INVALID)
  await there.tickets.redeem(second.ticket, FIREHOSE)

  const late = await here.tickets.issue(access, ofFirehose)
  await database.query("update stream_tickets set expires_at = now() - interval '1 second'")
  await expect(there.tickets.redeem(late.ticket, FIREHOSE)).rejects.toThrow(INVALID)
  const count = async () => Number((await database.query('select count(*) from stream_tickets'))[0]!['count'])
  const before = await count()
  await here.tickets.issue(Access.master(), ofFirehose)
  expect(await count()).toBe(before - 1)
})

test('a one-time code of one instance makes a login at the other one, once, and opens no stream', async () => {
  const { id, key, access } = await createKey()
  const issue = () => here.logins.codes.issue(here.logins.originOf(key, access), access)
  const { code } = await issue()
  await expect(there.tickets.redeem(code, STREAM)).rejects.toThrow(INVALID)
  const redeemed = await there.logins.codes.redeem(code)
  expect(redeemed?.access.limits.userId).toBe('user-17')
  for (const { logins } of [here, there]) expect(await logins.codes.redeem(code)).toBeUndefined()
  const master = here.logins.originOf('the master key', Access.master())
  const ofMaster = await here.logins.codes.issue(master, Access.master())
  expect((await there.logins.codes.redeem(ofMaster.code))?.access.isLimited).toBe(false)
  const late = await issue()
  await here.apiKeys.revoke(id)
  expect(await here.logins.codes.redeem(late.code)).toBeUndefined()
})
