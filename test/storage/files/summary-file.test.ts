import { mkdtempDisposable, open, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { NotedSummary } from '../../../src/storage/files/summary-file.ts'
import { SummaryFile } from '../../../src/storage/files/summary-file.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'

const PREVIEW = 'x'.repeat(1500)
const MIB = 1024 * 1024

function noted(id: string, lastSeq: number): NotedSummary {
  const times = { createdAt: 1, updatedAt: 2 }
  const texts = { title: undefined, userId: undefined, preview: PREVIEW, waitsSince: undefined, deadline: 3 }
  return {
    summary: { id, status: 'idle', lastSeq, ...times, ...texts, idempotency: undefined },
    stamp: { size: lastSeq, mtimeMs: 1 },
  }
}

test('the file does not grow with what was written while the server runs, and loses nothing', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries')
  const faults: unknown[] = []
  const open = () => new SummaryFile({ path, onFault: (error) => void faults.push(error) })
  const file = open()
  await file.read()
  const ids = Array.from({ length: 100 }, () => uuid7())
  let largest = 0
  for (let round = 1; round <= 60; round++) {
    for (const id of ids) file.note(noted(id, round))
    const deleted = uuid7()
    file.note(noted(deleted, 1))
    await file.forget(deleted)
    largest = Math.max(largest, (await stat(path)).size)
  }
  // 9 MB were written, and 150 kB of them count.
  expect(largest).toBeLessThan(2 * MIB)
  await file.close()
  const read = await open().read()
  expect([...read.values()].map(({ summary }) => summary.lastSeq)).toEqual(ids.map(() => 60))
  expect(faults).toEqual([])
})

test('the file is rewritten only when blanks take half of it, and at least a megabyte', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries')
  const file = new SummaryFile({ path, onFault: () => {} })
  await file.read()
  const fileNumber = async () => (await stat(path)).ino
  const replace = async (rounds: number) => {
    for (let round = 1; round <= rounds; round++) {
      for (const id of IDS) file.note(noted(id, round))
      await file.forget(uuid7())
    }
  }
  const IDS = Array.from({ length: 50 }, () => uuid7())
  await replace(1)
  // Its number is not given to another file while it is open.
  await using held = await open(path)
  const first = (await held.stat()).ino
  await replace(3)
  expect(await fileNumber()).toBe(first)
  await replace(40)
  expect(await fileNumber()).not.toBe(first)
  await file.close()
  expect([...(await new SummaryFile({ path, onFault: () => {} }).read()).keys()]).toEqual(IDS)
})

test('a summary is read as it was noted, and each entry that is damaged in one field is left out, alone', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'summaries-'))
  const path = join(directory.path, 'summaries')
  const faults: unknown[] = []
  const open = () => new SummaryFile({ path, onFault: (error) => void faults.push(error) })
  const file = open()
  await file.read()
  const { summary, stamp } = noted(uuid7(), 3)
  const full = {
    summary: { ...summary, title: 'totals', userId: 'user-17', idempotency: { key: 'k', bodyHash: 'hash' } },
    stamp,
  }
  file.note(full)
  file.note(noted('plain', 1))
  await file.close()
  expect([...(await open().read()).values()]).toEqual([full, noted('plain', 1)])

  const [header, line] = (await readFile(path, 'utf8')).split('\n') as [string, string]
  const entry: unknown[] = JSON.parse(line)
  const damaged = entry.flatMap((field, at) => {
    const others = [typeof field === 'number' ? 'text' : 7, true, {}, ...(at < 7 || at === 9 ? [null] : [])]
    return others.map((other) => entry.with(at, other))
  })
  const lines = [...damaged, entry.with(3, 'asleep'), entry.slice(1), [...entry, 1], {}, null, 'text'].map((each) =>
    JSON.stringify(each),
  )
  await writeFile(path, [header, ...lines, '{"torn', line, ''].join('\n'))
  expect([...(await open().read()).values()]).toEqual([full])
  expect(faults).toEqual([])
})
