/** Conversations of two instances on one PostgreSQL: one that another instance has taken over, or has closed at rest. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../src/storage/postgres/postgres-storage.ts'
import { tempDirectory } from '../events/fixtures.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, setBench, tool, userText } from './fixtures.ts'

/** An instance that raises no counter, however long that takes: what becomes of it is decided by the tests. */
const SILENT = { renewMs: 3_600_000, ttlMs: 3_600_000 }

/** A bench whose server shares the database with others. */
async function setInstance(database: TestDatabase, options: BenchOptions) {
  await using opened = new AsyncDisposableStack()
  const place = opened.use(await tempDirectory())
  const storage = await openPostgresStorage({
    url: database.url,
    directory: join(place.path, uuid7()),
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault: () => {}, // the end of one of them
    ...SILENT,
  })
  const wrapStorage: BenchOptions['wrapStorage'] = (files) => {
    opened.use(files)
    return storage
  }
  const bench = opened.use(await setBench({ ...options, wrapStorage }))
  const end = opened.move()
  return { bench, [Symbol.asyncDispose]: () => end.disposeAsync() }
}

test('a conversation that another instance has taken over ends here, stores nothing more, and is not opened again', async () => {
  const slow = gate('Slow')
  const script = [{ calls: [call('Slow')] }, { text: 'Done.' }]
  await using database = await createDatabase()
  await using former = await setInstance(database, { tools: [slow.tool], script })
  const { manager } = former.bench
  const first = await former.bench.converse()
  manager.hold(first.id)
  const { run_id } = await first.post(userText('go', true))
  await slow.entered

  await database.query('update incarnations set ended_at = now()')
  await using next = await setInstance(database, {})
  const second = await next.bench.manager.open(first.id)
  expect(second.state.status).toBe('paused')
  const before = await eventsOf(second)
  expect(only(before, 'Result')).toMatchObject([{ run_id }])
  expect(only(before, 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])

  slow.open()
  await until('the end of the former object', () => Promise.resolve(manager.openCount === 0))
  expect(first.log.ended).toBe('closing')
  for (let times = 0; times < 2; times++)
    await expect(manager.open(first.id)).rejects.toMatchObject({ code: 'storage_unavailable' })
  expect(await eventsOf(second)).toEqual(before)
})

test('a conversation that an instance has closed at rest continues in another one as if it had been there', async () => {
  const slow = gate('Slow')
  const quick = tool('Quick', () => ({ output: 'ran' }))
  const options: BenchOptions = {
    tools: [slow.tool, quick],
    script: [{ calls: [call('Slow'), call('Quick')] }, { text: 'Done.' }],
    manager: { idle: { afterMs: 20, isShort: () => false } },
  }
  await using database = await createDatabase()
  await using here = await setInstance(database, options)
  const first = await here.bench.converse()
  const release = here.bench.manager.hold(first.id)
  await first.post(userText('go', true))
  await slow.entered
  await first.pause({ interrupt: false })
  slow.open()
  await until('the result', () => Promise.resolve(first.state.openCalls.length === 1))
  release()
  const isReleased = async () => (await database.query('select is_released from conversations'))[0]!['is_released']
  await until('the close', async () => (await isReleased()) === true)

  await using there = await setInstance(database, options)
  there.bench.manager.hold(first.id)
  const second = await there.bench.manager.open(first.id)
  expect(await endOf(second, await second.run())).toMatchObject({ final_text: 'Done.' })
  expect(only(await eventsOf(second), 'ToolResult').map(({ output }) => output)).toEqual(['through', 'ran'])
  await expect(here.bench.manager.open(first.id)).rejects.toMatchObject({ code: 'storage_unavailable' })
})

test('a create that another instance has executed a moment ago is in flight here, because only that one has its response', async () => {
  await using database = await createDatabase()
  await using there = await setInstance(database, {})
  await using here = await setInstance(database, {})
  const request = CreateConversation.parse({ llm_config: { model: 'scripted', base_url: 'http://127.0.0.1:9' } })
  const at = ({ bench }: typeof here, bodyHash = 'hash') => bench.manager.create(request, { key: 'key', bodyHash })
  const { id } = await at(there)
  await expect(at(here)).rejects.toMatchObject({ code: 'idempotency_in_flight' })
  await expect(at(here, 'other')).rejects.toMatchObject({ code: 'idempotency_mismatch' })
  expect((await at(there)).id).toBe(id)
})

test('a conversation that was known here when another instance deleted it is deleted here, and not damaged', async () => {
  await using database = await createDatabase()
  await using there = await setInstance(database, {})
  await using here = await setInstance(database, {})
  const { id } = await there.bench.converse()
  await here.bench.manager.upToDate()
  expect(here.bench.manager.ownerOf(id)).toMatchObject({ id })
  await there.bench.manager.delete(id)
  await expect(here.bench.manager.open(id)).rejects.toMatchObject({ code: 'conversation_deleted' })
})
