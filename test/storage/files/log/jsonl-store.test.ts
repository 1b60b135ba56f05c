import { appendFile, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EventStore } from '../../../../src/events/event-store.ts'
import { createJsonlStore } from '../../../../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../../../../src/lib/uuid7.ts'
import type { TempDirectory } from '../../../events/fixtures.ts'
import { append, message, readAll, seqsOf, tempDirectory, textOf } from '../../../events/fixtures.ts'
import { describeStore } from '../../../events/store-contract.ts'
import { effort, IS_SOAK } from '../../../support/patience.ts'

describeStore('The JSONL store', async (now) => {
  const directory = await tempDirectory()
  const make = () => createJsonlStore({ directory: join(directory.path, 'sessions'), now })
  return { store: make(), restart: make, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() }
})

describe('The JSONL store', () => {
  let directory: TempDirectory
  let store: EventStore
  let id: string
  let path: string

  beforeEach(async () => {
    directory = await tempDirectory()
    store = createJsonlStore({ directory: directory.path, idleMs: 40 })
    id = uuid7()
    path = join(directory.path, id, 'events.jsonl')
  })
  afterEach(() => directory[Symbol.asyncDispose]())

  const restarted = () => createJsonlStore({ directory: directory.path })

  test('writes one event a line, each of them JSON, the seq and the type first', async () => {
    const log = await store.create(id)
    const events = await append(log, message('a'), message('b'), message('c'))
    const lines = (await readFile(path, 'utf8')).split('\n')
    expect(lines.pop()).toBe('')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(events.map(({ event }) => event))
    expect(lines[1]).toMatch(/^\{"seq":2,"type":"UserMessage","id":"/)
    expect(lines.map((line) => line.endsWith(' '))).toEqual([true, true, false])
  })

  test('goes into a directory that others have put files into', async () => {
    await mkdir(join(directory.path, id))
    await writeFile(join(directory.path, id, 'secrets.enc'), 'x')
    await append(await store.create(id), message('a'))
    await store.delete(id)
    expect(await readdir(join(directory.path, id))).toEqual(['secrets.enc'])
  })

  test('closes the file while nobody uses it, and opens it again', async () => {
    const log = await store.create(id)
    await append(log, message('a'))
    expect(openFiles()).toContain(path)
    await expect.poll(openFiles).not.toContain(path)
    await append(log, message('b'))
    expect(openFiles()).toContain(path)
    await expect.poll(openFiles).not.toContain(path)
    expect((await readAll(log)).map(textOf)).toEqual(['a', 'b'])
    await log.close()
    expect(openFiles()).not.toContain(path)
  })

  test('closing waits for reads in progress, and ends those that would continue', async () => {
    const log = await store.create(id)
    for (let i = 0; i < 10; i++) await append(log, message('x'.repeat(300_000)))
    const reads = Array.from({ length: 20 }, (_, i) => log.read({ limit: 10, afterSeq: i % 10 }))
    const settled = Promise.allSettled(reads)
    await log.close()
    expect(openFiles()).not.toContain(path)
    for (const [i, read] of (await settled).entries()) {
      // What else it might have read is another file, opened meanwhile under the same number.
      if (read.status === 'fulfilled') expect(read.value.events[0]!.seq).toBe((i % 10) + 1)
      else expect(read.reason).toMatchObject({ code: 'unavailable' })
    }
  })

  test.each([
    ['removed', () => rm(path)],
    ['replaced by another', () => rm(path).then(() => writeFile(path, 'mine'))],
  ])('a file %s under an open log fails it permanently, idle or not', async (_, meddle) => {
    for (const isIdle of [false, true]) {
      const log = await store.create(id)
      await append(log, message('a'))
      await meddle()
      if (isIdle) await expect.poll(() => openFiles().filter((name) => name.startsWith(path))).toEqual([])
      await expect(log.append([message('b')])).rejects.toMatchObject({ code: 'storage_failed' })
      await expect(log.append([message('c')])).rejects.toMatchObject({ code: 'storage_failed' })
      expect(log.head).toBe(1)
      await log.close()
      expect(await readFile(path, 'utf8').catch(() => 'mine')).toBe('mine')
      await rm(path, { force: true })
    }
  })

  describe('after a crash', () => {
    test('has exactly the whole writes, wherever the file was cut', async () => {
      const log = await store.create(id)
      const ends = [0]
      const heads = [0]
      for (const size of [1, 3]) {
        await append(log, ...Array.from({ length: size }, (_, i) => message(`é${i}\u2028`)))
        ends.push((await stat(path)).size)
        heads.push(log.head)
      }
      await log.close()
      const whole = await readFile(path)
      // Each byte in the soak; otherwise each next to the end of a write, and some of the others.
      const isTried = (cut: number) =>
        IS_SOAK || cut % 25 === 0 || cut % 10 === 0 || ends.some((end) => Math.abs(cut - end) <= 5)
      for (const cut of Array.from({ length: whole.length + 1 }, (_, at) => at).filter(isTried)) {
        await writeFile(path, whole.subarray(0, cut))
        const { log: reopened, repaired } = await restarted().open(id)
        const last = ends.findLastIndex((end) => end <= cut)
        expect([cut, reopened.head, repaired !== undefined]).toEqual([cut, heads[last], cut !== ends[last]])
        expect((await stat(path)).size).toBe(ends[last])
        if (cut % 25 === 0) {
          await append(reopened, message('on'))
          expect(seqsOf(await readAll(reopened))).toEqual(Array.from({ length: heads[last]! + 1 }, (_, i) => i + 1))
        }
        await reopened.close()
      }
    })

    test('takes pages of the last write that never reached the disk for what they are, wherever they are', async () => {
      const log = await store.create(id)
      await append(log, message('a'), message('b'))
      const durable = (await stat(path)).size
      const last = await append(log, ...Array.from({ length: 6 }, (_, i) => message(`${i}`.repeat(80))))
      await log.close()
      const whole = await readFile(path)
      const hole = fc.tuple(fc.integer({ min: durable, max: whole.length - 1 }), fc.integer({ min: 1, max: 900 }))
      await fc.assert(
        fc.asyncProperty(hole, async ([from, length]) => {
          await writeFile(path, Buffer.from(whole).fill(0, from, Math.min(from + length, whole.length)))
          const { log: reopened } = await restarted().open(id)
          expect((await readAll(reopened)).map(textOf)).toEqual(['a', 'b'])
          await reopened.close()
        }),
        { numRuns: effort(15, 1000) },
      )
      expect(last).toHaveLength(6)
    })

    test('detects such a page even if it ends at the end of a line', async () => {
      const log = await store.create(id)
      await append(log, message('a'))
      await append(log, message('b'), message('c'))
      await log.close()
      const whole = await readFile(path)
      const lineEnd = whole.lastIndexOf('\n', -2)
      await writeFile(path, whole.fill(0, lineEnd - 40, lineEnd))
      const { log: reopened } = await restarted().open(id)
      expect((await readAll(reopened)).map(textOf)).toEqual(['a'])
    })

    test('keeps what it cut in a file next to the log, and reports it', async () => {
      const log = await store.create(id)
      await append(log, message('kept'))
      await log.close()
      await appendFile(path, '{"seq":2,"type":"UserMess')
      const { log: reopened, repaired } = await restarted().open(id)
      const torn = (await readdir(join(directory.path, id))).find((name) => name.startsWith('events.jsonl.torn-'))!
      expect(repaired).toContain('25 bytes after event 1')
      expect(repaired).toContain(torn)
      expect(await readFile(join(directory.path, id, torn), 'utf8')).toBe('{"seq":2,"type":"UserMess')
      expect(seqsOf(await append(reopened, message('next')))).toEqual([2])
    })

    test.each(['garbage', 'garbage\n', '{}\n', '\n\n', '\0'.repeat(100_000), `${'x'.repeat(200_000)}\n{"seq":`])(
      'cuts any tail that was never acknowledged (%#)',
      async (tail) => {
        const log = await store.create(id)
        await append(log, message('a'), message('b'))
        await log.close()
        await appendFile(path, tail)
        const { log: reopened, repaired } = await restarted().open(id)
        expect(repaired).toBeDefined()
        expect((await readAll(reopened)).map(textOf)).toEqual(['a', 'b'])
      },
    )
  })

  describe('damage that a crash cannot cause', () => {
    const damage = async (change: (lines: string[]) => void): Promise<void> => {
      const log = await store.create(id)
      for (let i = 1; i <= 9; i++) await append(log, message(`${i}`))
      await log.close()
      const lines = (await readFile(path, 'utf8')).split('\n')
      change(lines)
      await writeFile(path, lines.join('\n'))
    }

    test.each([
      ['a line overwritten', (lines: string[]) => lines.splice(4, 1, 'x'.repeat(lines[4]!.length))],
      ['a line missing', (lines: string[]) => lines.splice(4, 1)],
      ['a line twice', (lines: string[]) => lines.splice(4, 0, lines[3]!)],
      ['a line cut short', (lines: string[]) => lines.splice(4, 1, lines[4]!.slice(0, 100))],
      ['two lines exchanged', (lines: string[]) => lines.splice(4, 2, lines[5]!, lines[4]!)],
    ])('is reported with its line when a reader meets it, in either order: %s', async (_, change) => {
      await damage(change)
      const { log, repaired } = await restarted().open(id)
      expect(repaired).toBeUndefined()
      for (const order of ['asc', 'desc'] as const) {
        await expect(log.read({ limit: 100, order })).rejects.toMatchObject({
          code: 'conversation_damaged',
          message: expect.stringContaining(' is not an event, or not the one that belongs there. '),
          details: { line: expect.toSatisfy((line: number) => line >= 3 && line <= 6) },
        })
      }
      expect(seqsOf((await log.read({ limit: 2 })).events)).toEqual([1, 2])
      expect(seqsOf((await log.read({ limit: 2, order: 'desc' })).events)).toEqual([9, 8])
    })

    test('inside a line is reported when the event is read', async () => {
      await damage((lines) => (lines[4] = lines[4]!.replace('"content":[', '"content":{')))
      const { log } = await restarted().open(id)
      const { events } = await log.read({ limit: 100 })
      expect(() => events[4]!.event).toThrow(
        expect.objectContaining({ code: 'conversation_damaged', details: { line: 5 } }),
      )
      expect(events[5]!.event.seq).toBe(6)
    })

    test('that leaves no event at all does not become an empty conversation', async () => {
      await damage((lines) => lines.fill('not a log'))
      await expect(restarted().open(id)).rejects.toMatchObject({ code: 'conversation_damaged' })
    })

    test('a file truncated under an open log is reported to its readers', async () => {
      const log = await store.create(id)
      for (let i = 0; i < 5; i++) await append(log, message('x'))
      await truncate(path, 300)
      await expect(readAll(log)).rejects.toMatchObject({ code: 'conversation_damaged' })
    })
  })

  test('reads no more of a long log than of a short one', async () => {
    const log = await store.create(id)
    const text = 'x'.repeat(300)
    for (let i = 0; i < 20; i++) await append(log, ...Array.from({ length: 2500 }, () => message(text)))
    await log.close()
    const readAnew = async () => {
      const { log: reopened } = await restarted().open(id)
      const before = bytesRead()
      for (let afterSeq = 1000; afterSeq < 50_000; afterSeq += 7001) {
        expect((await reopened.read({ afterSeq, limit: 100 })).events).toHaveLength(100)
        expect((await reopened.read({ beforeSeq: afterSeq, limit: 100, order: 'desc' })).events).toHaveLength(100)
      }
      const bytes = bytesRead() - before
      await reopened.close()
      return bytes
    }
    // 14 pages of a log of 26 MB that was never read before. The whole process is counted, and something else in it may read.
    const all = [await readAnew(), await readAnew(), await readAnew()]
    expect(Math.min(...all)).toBeLessThan(14 * 350_000)
  })
})

function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      // The descriptor readdir itself used.
      return []
    }
  })
}

function bytesRead(): number {
  return Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))![1])
}
