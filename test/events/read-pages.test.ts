import { expect, test } from 'vitest'
import type { ReadOptions } from '../../src/events/event-store.ts'
import { readPages } from '../../src/events/read-pages.ts'
import { message, seqsOf, sharedLog, toolResult } from './fixtures.ts'

/** A log of ten events, every third of which is a result, that counts how often it is read. */
async function tenEvents() {
  const shared = await sharedLog()
  await shared.log.append(Array.from({ length: 10 }, (_, i) => (i % 3 === 2 ? toolResult(i) : message(`m${i}`))))
  let reads = 0
  const read = (options: ReadOptions) => {
    reads++
    return shared.log.read(options)
  }
  return { log: { read }, reads: () => reads, [Symbol.asyncDispose]: () => shared[Symbol.asyncDispose]() }
}

test.each([
  [{}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
  [{ order: 'desc' }, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]],
  [{ afterSeq: 3, beforeSeq: 9 }, [4, 5, 6, 7, 8]],
  [{ order: 'desc', afterSeq: 3, beforeSeq: 9 }, [8, 7, 6, 5, 4]],
  [{ types: new Set(['ToolResult']) }, [3, 6, 9]],
  [{ afterSeq: 10 }, []],
] as const)('gives each event of a range once, in its order: %o', async (range, seqs) => {
  await using it = await tenEvents()
  const pages = await Array.fromAsync(readPages(it.log, { ...range, limit: 2 }))
  expect(seqsOf(pages.flatMap(({ events }) => events))).toEqual(seqs)
  expect(pages.every(({ events }) => events.length <= 2)).toBe(true)
})

test('reads no further when its reader leaves', async () => {
  await using it = await tenEvents()
  for await (const { events } of readPages(it.log, { limit: 2 })) if (seqsOf(events).includes(4)) break
  expect(it.reads()).toBe(2)
})

test('an abort throws its reason before the next page is read', async () => {
  await using it = await tenEvents()
  const abort = new AbortController()
  const reading = (async () => {
    for await (const _ of readPages(it.log, { limit: 2 }, abort.signal)) abort.abort(new Error('enough'))
  })()
  await expect(reading).rejects.toThrow('enough')
  expect(it.reads()).toBe(1)
})
