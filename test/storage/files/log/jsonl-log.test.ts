import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { JsonlLog } from '../../../../src/storage/files/log/jsonl-log.ts'
import { LogFile } from '../../../../src/storage/files/log/log-file.ts'
import { SeqIndex } from '../../../../src/storage/files/log/seq-index.ts'
import { uuid7 } from '../../../../src/lib/uuid7.ts'
import { append, message, readAll, seqsOf, tempDirectory } from '../../../events/fixtures.ts'

async function newLog(path: string, named: Promise<unknown>): Promise<JsonlLog> {
  await mkdir(dirname(path), { recursive: true })
  const file = new LogFile(path, { idleMs: 1000, onIdle: () => {} })
  await file.create()
  const tail = { last: undefined, end: 0 }
  const deps = { file, index: new SeqIndex(), tail, named, now: Date.now, onClosed: () => {} }
  return new JsonlLog({ conversationId: uuid7(), epoch: 1, ...deps })
}

test('the first events of a new log are stored when its directory entry is durable, and not read before', async () => {
  await using directory = await tempDirectory()
  const path = join(directory.path, 'log/events.jsonl')
  const named = Promise.withResolvers<void>()
  const log = await newLog(path, named.promise)
  let isStored = false
  const first = append(log, message('a')).finally(() => (isStored = true))
  // The write does not wait for it.
  await expect.poll(() => readFile(path, 'utf8')).toContain('"seq":1')
  expect([isStored, log.head, await readAll(log)]).toEqual([false, 0, []])
  named.resolve()
  await first
  await append(log, message('b'))
  expect(seqsOf(await readAll(log))).toEqual([1, 2])
  await log.close()
})

test('a log whose directory entry cannot be made durable stores nothing', async () => {
  await using directory = await tempDirectory()
  const named = Promise.reject(new Error('input/output error'))
  named.catch(() => {})
  const log = await newLog(join(directory.path, 'log/events.jsonl'), named)
  for (let time = 0; time < 2; time++)
    await expect(append(log, message('a'))).rejects.toMatchObject({ code: 'storage_failed' })
  expect([log.head, await readAll(log)]).toEqual([0, []])
  await log.close()
})
