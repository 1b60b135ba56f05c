/** Connections to the database that break at random moments, through a TCP proxy. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { append, message, readAll, tempDirectory, textOf } from '../../events/fixtures.ts'
import { startCutProxy } from '../../support/cut-proxy.ts'
import { effort } from '../../support/patience.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { createDatabase } from '../../support/postgres.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const CUTS = effort(60, 1000)
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const WRITERS = 4

test.each(['none', 'transaction'] as const)(
  `${CUTS} cut connections, seed ${SEED}, pooler: %s; no acknowledged event is lost, none is stored twice, and there is no gap`,
  async (mode) => {
    const random = createRandom(SEED)
    await using directory = await tempDirectory()
    await using database = await createDatabase()
    await using pooler = mode === 'none' ? undefined : await startPgBouncer(database, mode)
    const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
    const poolerProxy = pooler && (await startCutProxy(new URL(`http://127.0.0.1:${pooler.port}`)))
    const through = ({ url }: { readonly url: string }) => {
      const throughProxy = new URL(database.url)
      throughProxy.port = new URL(url).port
      return throughProxy.href
    }
    const open = (urls: { readonly url: string; readonly sessionUrl?: string }) =>
      openPostgresStorage({
        ...urls,
        directory: directory.path,
        operatorKeys: ['key of the operator'],
        serverVersion: 'test',
        onFault: () => {}, // the cuts
      })
    const ids = Array.from({ length: WRITERS }, () => uuid7())
    const acknowledged = new Map<string, string[]>(ids.map((id) => [id, []]))
    {
      await using storage = await open(
        poolerProxy ? { url: through(poolerProxy), sessionUrl: through(proxy) } : { url: through(proxy) },
      )
      const over = new AbortController()
      let count = 0
      const writers = ids.map(async (id) => {
        const own = storage.conversation(id)
        await own.reserve()
        const log = await own.createLog({ env: { TOKEN: id } })
        for (let n = 0; !over.signal.aborted; n++) {
          const texts = [`${n}.0`, `${n}.1`].slice(0, 1 + (n % 2))
          await append(log, ...texts.map(message))
          acknowledged.get(id)!.push(...texts)
          await storage.active.set(id)
          if (n % 2 === 1) await storage.active.clear(id)
          count += 1
        }
        await storage.active.clear(id)
      })
      const all = Promise.all(writers)
      all.catch(() => {}) // awaited below
      for (let cut = 0; cut < CUTS; cut++) {
        const enough = count + random.below(4)
        await Promise.race([all, until('more appends', () => Promise.resolve(count >= enough))])
        for (let turns = random.below(30); turns > 0; turns--) await turn()
        random.pick(poolerProxy ? [proxy, poolerProxy] : [proxy]).cut()
      }
      over.abort()
      await all
    }
    await proxy.close()
    await poolerProxy?.close()
    await using storage = await open({ url: database.url })
    expect(await storage.active.ids(), 'no lost statement is executed later').toEqual([])
    for (const id of ids) {
      await using view = await storage.view(id)
      expect((await readAll(view, 1000)).map(textOf)).toEqual(acknowledged.get(id))
      expect(await storage.conversation(id).readSecrets()).toEqual({ env: { TOKEN: id } })
    }
  },
)

test('after an outage that is too long, runs continue; requests were refused with nothing stored', async () => {
  await using directory = await tempDirectory()
  await using database = await createDatabase()
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
  const throughProxy = new URL(database.url)
  throughProxy.port = new URL(proxy.url).port
  const storage = await openPostgresStorage({
    url: throughProxy.href,
    directory: directory.path,
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    outageMs: 300,
    renewMs: 20,
    onFault: () => {}, // the outage
  })
  const own = storage.conversation(uuid7())
  await own.reserve()
  const log = await own.createLog({})
  await append(log, message('before'))
  await until('an answer', () => Promise.resolve(storage.availability.answers()))
  proxy.down()
  const forClient = async (text: string) => await log.append([message(text)], { isForClient: true })
  // The first one finds the outage at a connection that is open: whether it is stored is decided afterwards.
  const uncertain = forClient('uncertain')
  const ofRun = append(log, message('of a run'))
  const refused = await Promise.allSettled([forClient('refused'), storage.due.set(own.id)])
  expect(refused).toMatchObject([
    { status: 'rejected', reason: { code: 'storage_unavailable' } },
    { status: 'rejected', reason: { code: 'storage_unavailable' } },
  ])
  await expect(forClient('also refused')).rejects.toMatchObject({ code: 'storage_unavailable' })
  await expect(own.exists()).rejects.toMatchObject({ code: 'storage_unavailable' })
  expect((await database.query('select json from events')).length).toBe(1)
  await until('a storage that is not ready', () => Promise.resolve(!storage.availability.answers()))
  proxy.up()
  expect(await uncertain).toMatchObject({ kind: 'appended' })
  await ofRun
  await append(log, message('after'))
  expect((await readAll(log)).map(textOf)).toEqual(['before', 'uncertain', 'of a run', 'after'])
  await until('an answer', () => Promise.resolve(storage.availability.answers()))
  await storage[Symbol.asyncDispose]()
  await proxy.close()
})

test('a start waits for a database that has not started, and says so once', async () => {
  await using directory = await tempDirectory()
  await using database = await createDatabase()
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
  const throughProxy = new URL(database.url)
  throughProxy.port = new URL(proxy.url).port
  const fixed = {
    directory: directory.path,
    operatorKeys: ['key of the operator'] as const,
    serverVersion: 'test',
    onFault: () => {},
  }
  const reasons: unknown[] = []
  proxy.down()
  const waits = { ...fixed, outageMs: 600_000, onAway: (error: unknown) => reasons.push(error) }
  const opening = openPostgresStorage({ ...waits, url: throughProxy.href })
  await until('the report', () => Promise.resolve(reasons.length > 0))
  proxy.up()
  await using storage = await opening
  expect([reasons.length, await storage.ids()]).toEqual([1, []])
  // What no wait changes fails at once: otherwise the test would take as long as the outage.
  const elsewhere = { ...waits, directory: `${directory.path}/other` }
  const wrongName = new URL(database.url)
  wrongName.pathname = '/nothing'
  await expect(openPostgresStorage({ ...elsewhere, url: wrongName.href })).rejects.toThrow(/"nothing" does not exist/)
  const wrongUser = new URL(database.url)
  wrongUser.username = 'nobody'
  await expect(openPostgresStorage({ ...elsewhere, url: wrongUser.href })).rejects.toThrow(/"nobody" does not exist/)
  await expect(openPostgresStorage({ ...elsewhere, url: `${database.url}?sslmode=verify-full` })).rejects.toThrow(/SSL/)
  proxy.down()
  const short = { ...elsewhere, outageMs: 1, url: throughProxy.href }
  await expect(openPostgresStorage(short)).rejects.toThrow(/cannot be used: Connection terminated unexpectedly/)
  await proxy.close()
})
