import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { NotedSummary } from '../../../src/storage/files/summary-table.ts'
import { SummaryTable } from '../../../src/storage/files/summary-table.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'

const PREVIEW = 'x'.repeat(1500)
const MIB = 1024 * 1024

function noted(id: string, lastSeq: number): NotedSummary {
  const times = { createdAt: 1, updatedAt: 2 }
  const found = { labels: [], fields: {}, lastWords: 'w', model: 'm', costUsd: 0.5, isArchived: true, waiting: 1 }
  const texts = {
    title: undefined,
    userId: undefined,
    profile: undefined,
    ...found,
    preview: PREVIEW,
    waitsSince: undefined,
    deadline: 3,
  }
  return {
    summary: { id, status: 'idle', lastSeq, ...times, ...texts, idempotency: undefined },
    stamp: { size: lastSeq, mtimeMs: 1 },
  }
}

test('the file does not grow with what was written while the server runs, and loses nothing', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries.db')
  const faults: unknown[] = []
  const open = () => new SummaryTable({ path, onFault: (error) => void faults.push(error) })
  const table = open()
  const ids = Array.from({ length: 100 }, () => uuid7())
  let largest = 0
  for (let round = 1; round <= 60; round++) {
    for (const id of ids) table.note(noted(id, round))
    const deleted = uuid7()
    table.note(noted(deleted, 1))
    await table.forget(deleted)
    largest = Math.max(largest, (await stat(path)).size)
  }
  // 9 MB were written, and 150 kB of them count.
  expect(largest).toBeLessThan(2 * MIB)
  await table.close()
  const read = await open().read()
  expect([...read.values()].map(({ summary }) => summary.lastSeq)).toEqual(ids.map(() => 60))
  expect(faults).toEqual([])
})

test('a summary is read as it was noted', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries.db')
  const faults: unknown[] = []
  const open = () => new SummaryTable({ path, onFault: (error) => void faults.push(error) })
  const table = open()
  const { summary, stamp } = noted(uuid7(), 3)
  const found = { labels: ['urgent', 'a, b'], fields: { ticket: '17', 'a=b': '' } }
  const texts = { title: 'totals ü', userId: 'user-17', profile: 'reviewer', ...found }
  const full = { summary: { ...summary, ...texts, idempotency: { key: 'k', bodyHash: 'hash' } }, stamp }
  // More than are read at a time.
  const others = Array.from({ length: 600 }, (_, n) => noted(`plain ${String(n).padStart(3, '0')}`, n))
  for (const each of [full, ...others]) table.note(each)
  await table.close()
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  const next = open()
  expect([...(await next.read()).values()]).toEqual([full, ...others])
  await next.close()
  expect(faults).toEqual([])
})

test('each entry that is damaged is left out, and those of another format all are', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries.db')
  const open = () => new SummaryTable({ path, onFault: (error) => expect.fail(String(error)) })
  const read = async () => {
    const table = open()
    const ids = [...(await table.read()).keys()]
    await table.close()
    return ids
  }
  const table = open()
  table.note(noted('whole', 1))
  await table.close()
  const database = new DatabaseSync(path)
  const entry = JSON.parse(String(database.prepare('SELECT entry FROM summaries').get()!['entry'])) as unknown[]
  const damaged = entry.flatMap((field, at) => {
    const others = [typeof field === 'number' ? 'text' : 7, true, {}, ...(at < 7 || at === 11 ? [null] : [])]
    return others.map((other) => entry.with(at, other))
  })
  const values = [
    ...damaged,
    entry.with(3, 'asleep'),
    entry.with(2, 2),
    entry.slice(1),
    [...entry, 1],
    {},
    null,
    'text',
  ]
  const insert = database.prepare('INSERT INTO summaries (id, entry) VALUES (?, ?)')
  for (const [n, value] of values.entries()) insert.run(`damaged ${n}`, JSON.stringify(value))
  database.close()
  expect(await read()).toEqual(['whole'])

  const older = new DatabaseSync(path)
  older.exec('PRAGMA user_version = 0')
  older.close()
  expect(await read()).toEqual([])
})

test('a database that is damaged is made again', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries.db')
  const table = new SummaryTable({ path, onFault: () => {} })
  for (let n = 0; n < 100; n++) table.note(noted(uuid7(), n))
  await table.close()
  const bytes = await readFile(path)
  const former = (await stat(path)).size
  const zeroed = Buffer.from(bytes).fill(0, bytes.lastIndexOf('xxxx') - 100, bytes.lastIndexOf('xxxx'))
  for (const [what, content] of Object.entries({
    'not a database': Buffer.from('[]\n'.repeat(1000)),
    'without its end': bytes.subarray(0, former - 5000),
    'without its pages': Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(former - 4096)]),
    'with a hole in a text': zeroed,
  })) {
    await writeFile(path, content)
    const faults: unknown[] = []
    const open = () => new SummaryTable({ path, onFault: (error) => void faults.push(error) })
    const next = open()
    await next.read()
    next.note(noted('later', 1))
    await next.close()
    expect(faults.length, what).toBeGreaterThan(0)
    const last = open()
    expect([...(await last.read()).keys()], what).toEqual(['later'])
    await last.close()
  }
})

test('a database that has no room keeps what it has, and is removed rather than keep what is to be forgotten', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries.db')
  // A limit on the size of files fails a write as a full disk does.
  const script = [process.execPath, join(import.meta.dirname, 'children/fill-summaries.ts'), path]
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const { stdout } = await promisify(execFile)('bash', ['-c', 'ulimit -S -f 128; exec "$0" "$@"', ...script], { env })
  const { kept, ...rest } = JSON.parse(stdout) as { kept: number }
  expect(kept).toBeGreaterThan(10)
  expect(rest).toEqual({ faults: [1, 2], isRemoved: true })
})
