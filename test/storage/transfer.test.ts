/** An import and an export that are killed at random moments, and continue. */
import { appendFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { openFileStorage } from '../../src/storage/files/file-storage.ts'
import { append, message, tempDirectory } from '../events/fixtures.ts'
import { effort } from '../support/patience.ts'
import { createDatabase } from '../support/postgres.ts'
import { createRandom } from '../support/random.ts'
import { launch } from '../support/server.ts'
import { until } from '../support/until.ts'

const KILLS = effort(4, 40)
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

const open = (directory: string) =>
  openFileStorage({
    directory,
    operatorKeys: ['key of the operator'],
    onFault(error) {
      throw error
    },
  })

/** Makes conversations of different sizes, one of which has no events yet. */
async function fill(directory: string): Promise<string[]> {
  await using storage = await open(directory)
  const ids = Array.from({ length: 8 }, () => uuid7())
  for (const [i, id] of ids.entries()) {
    const own = storage.conversation(id)
    await own.reserve()
    const log = await own.createLog({ env: { TOKEN: id } })
    for (let n = 0; n < 2 ** i; n++) await append(log, message(`${n}.0`), message('é\u0000'.repeat(3000)))
    await own.callbacks.write([{ id }])
    await own.commands.write({ id: uuid7(), keyHash: '0123456789abcdef' }, { n: i }, { durable: true })
    await storage.due.set(id)
    await log.close()
  }
  const empty = storage.conversation(uuid7())
  await empty.reserve()
  await (await empty.createLog({})).close()
  await storage.deletions.mark(uuid7(), { key: 'k', bodyHash: 'h', id: uuid7(), at: new Date().toISOString() })
  await storage.sharedWorkdirs.add('/a/shared/workdir', ids.slice(0, 2))
  await storage.profiles.change(await storage.profiles.version(), 'reviewer', { sealed: 'some text' })
  await storage.settled()
  return ids
}

/** The JSON of the events, as texts: what was written together is not kept. */
const eventsIn = async (directory: string, ids: readonly string[]) =>
  await Promise.all(
    ids.map(async (id) => {
      const text = await readFile(join(directory, 'sessions', id, 'events.jsonl'), 'utf8')
      return text.replaceAll(' \n', '\n')
    }),
  )

async function restOf(directory: string, ids: readonly string[]) {
  await using storage = await open(directory)
  const each = ids.map(async (id) => {
    const own = storage.conversation(id)
    const entries = await own.commands.entries()
    return [await own.readSecrets(), await own.callbacks.read(), entries, await own.commands.read(entries[0]!)]
  })
  const found = await Promise.all(each)
  const shared = await Promise.all(ids.map((id) => storage.sharedWorkdirs.has('/a/shared/workdir', id)))
  const { keys: profiles } = await storage.profiles.read()
  return { found, shared, profiles, due: (await storage.due.ids()).toSorted(), deleted: await storage.deletions.ids() }
}

test(`an import and an export that are killed ${KILLS} times each continue, and copy everything, seed ${SEED}`, async () => {
  const random = createRandom(SEED)
  await using place = await tempDirectory()
  const [source, target] = [join(place.path, 'source'), join(place.path, 'target')]
  const ids = await fill(source)
  const before = { events: await eventsIn(source, ids), rest: await restOf(source, ids) }
  await using database = await createDatabase()
  const run = (...args: string[]) =>
    launch(args, { env: { OPENHANDS_DATABASE_URL: database.url, HOME: place.path }, cwd: place.path })

  /** Kills it when so much is there, or lets it end. */
  const runKilled = async (args: string[], progress: () => Promise<number>, most: number) => {
    for (let kill = 0; kill < KILLS; kill++) {
      const running = run(...args)
      let hasEnded = false
      void running.exited.then(() => (hasEnded = true))
      const enough = (await progress()) + random.below(most)
      await until('progress', async () => hasEnded || (await progress()) >= enough)
      running.child.kill('SIGKILL')
      if ((await running.exited) === 0) return
    }
    const last = run(...args)
    expect([await last.exited, last.output()]).toEqual([0, expect.stringContaining('8 conversations with 510 events')])
  }
  const stored = async () =>
    Number((await database.query('select count(*) as count from events').catch(() => [{ count: 0 }]))[0]!['count'])
  await runKilled(['import', '--from', source], stored, 200)
  expect(await stored()).toBe(510)

  // As a server does that was started on it.
  await database.query("insert into incarnations (host, pid, server_version) values ('here', 1, 'test')")
  const files = async () => (await readdir(join(target, 'sessions')).catch(() => [])).length
  await runKilled(['export', '--to', target], files, 4)
  expect(await eventsIn(target, ids)).toEqual(before.events)
  expect(await restOf(target, ids)).toEqual(before.rest)
})

test('what is continued after an interrupted import is imported, too, and what was deleted is not', async () => {
  await using place = await tempDirectory()
  const directory = join(place.path, 'data')
  const [first = '', second = ''] = await fill(directory)
  await using database = await createDatabase()
  const run = async () => {
    const running = launch(['import', '--from', directory], {
      env: { OPENHANDS_DATABASE_URL: database.url },
      cwd: place.path,
    })
    return [await running.exited, running.output()]
  }
  // A damaged log prevents the end, but not the copies.
  const damaged = join(directory, 'sessions', uuid7())
  await mkdir(damaged)
  await writeFile(join(damaged, 'events.jsonl'), '{"seq":2,"type":"UserMessage"}\n')
  expect(await run()).toEqual([1, expect.stringContaining('is damaged')])
  await writeFile(join(damaged, 'events.jsonl'), '')
  {
    await using storage = await open(directory)
    const { log } = await storage.conversation(first).openLog()
    await append(log, message('later'))
    await log.close()
    await storage.deletions.mark(second)
    await storage.conversation(second).remove()
    await storage.settled()
  }
  // The remains of a write that a crash has torn are not an event.
  await appendFile(join(directory, 'sessions', first, 'events.jsonl'), '{"seq":4,"ty')
  expect(await run()).toEqual([0, expect.stringContaining('7 conversations with 507 events')])
  const [row] = await database.query('select head from conversations where id = $1', [first])
  expect(Number(row!['head'])).toBe(3)
})
