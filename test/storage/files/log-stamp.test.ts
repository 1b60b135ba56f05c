import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endingOf, isSameStamp, stampOf, stampsOf } from '../../../src/storage/files/log-stamp.ts'
import { createJsonlStore, logPathIn } from '../../../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { append, message, tempDirectory } from '../../events/fixtures.ts'

test('the ending of a log is its last event; of one that is torn, long or gone it is not known', async () => {
  await using directory = await tempDirectory()
  const id = uuid7()
  const path = logPathIn(directory.path, id)
  expect(endingOf(path)).toBeUndefined()
  const log = await createJsonlStore({ directory: directory.path }).create(id)
  expect(endingOf(path), 'of an empty one').toBeUndefined()
  const events = await append(log, message('a'), message('b'))
  expect(endingOf(path)).toMatchObject({ seq: 2, timestamp: events[1]!.event.timestamp })
  await append(log, message('x'.repeat(20_000)))
  expect(endingOf(path), 'of a long event').toBeUndefined()
  await append(log, message('c'))
  expect(endingOf(path)).toMatchObject({ seq: 4 })
  await log.close()
  await appendFile(path, '{"seq":5,"type":"UserMessage"')
  expect(endingOf(path), 'of a torn one').toBeUndefined()
})

test('stamps are in the order of the paths, distinguish states of a file, and are undefined for missing files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'stamps-'))
  const paths = Array.from({ length: 600 }, (_, i) => join(directory, String(i)))
  for (const [i, path] of paths.entries()) if (i % 7 !== 3) await writeFile(path, 'x'.repeat(i))
  const stamps = await stampsOf(paths, new AbortController().signal)
  expect(stamps.map((stamp) => stamp?.size)).toEqual(paths.map((_, i) => (i % 7 === 3 ? undefined : i)))
  await appendFile(paths[1]!, 'more')
  expect(isSameStamp(stampOf(paths[1]!)!, stamps[1]!)).toBe(false)
  expect(isSameStamp(stampOf(paths[2]!)!, stamps[2]!)).toBe(true)
  await expect(stampsOf(paths, AbortSignal.abort())).rejects.toThrow(/abort/)
  await rm(directory, { recursive: true })
})
