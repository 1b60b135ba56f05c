/** The index of a log: finds the right line wherever it begins, and what it has learnt saves reads. */
import { describe, expect, test } from 'vitest'
import { SeqIndex } from '../../../../src/storage/files/log/seq-index.ts'
import type { EventHeader } from '../../../../src/events/event-header.ts'

const EVENTS = 2000
const START_MS = Date.UTC(2026, 0, 1)
const ID = '018f0000-0000-7000-8000-000000000001'
/** A reader skips what lies between the position that it is given and its line. */
const NEAR_BYTES = 16 * 1024

/** A log of lines whose length varies by a hundred times, its file, and how many reads were made of it. */
function setLog() {
  const offsets: number[] = []
  let bytes = 0
  const lines = Array.from({ length: EVENTS }, (_, at) => {
    const timestamp = new Date(START_MS + at * 1000).toISOString()
    const header: EventHeader = { seq: at + 1, type: 'UserMessage', id: ID, timestamp, source: 'user' }
    const line = `${JSON.stringify({ ...header, text: 'x'.repeat(at % 50 === 0 ? 20_000 : 200) })}\n`
    offsets.push(bytes)
    bytes += line.length
    return line
  })
  const file = Buffer.from(lines.join(''))
  let reads = 0
  const source = {
    read(position: number, length: number) {
      reads += 1
      return Promise.resolve(file.subarray(position, position + length))
    },
  }
  const readsOf = async (work: () => Promise<unknown>) => {
    const before = reads
    await work()
    return reads - before
  }
  return { source, offsets, readsOf, end: { head: EVENTS, offset: file.length } }
}

describe('the index of a log', () => {
  test('finds a line at or shortly before the one with a seq or a time, also after it has learnt', async () => {
    const { source, offsets, end } = setLog()
    const index = new SeqIndex()
    for (let round = 0; round < 2; round++)
      for (let seq = 1; seq <= EVENTS; seq += 37) {
        const wanted = offsets[seq - 1]!
        const time = START_MS + (seq - 1) * 1000
        for (const found of [await index.seekSeq(source, seq, end), await index.seekTime(source, time, end)]) {
          expect(offsets).toContain(found)
          expect(found).toBeLessThanOrEqual(wanted)
          expect(wanted - found).toBeLessThan(NEAR_BYTES + 21_000)
        }
      }
  })

  test('reads less for what lies near a place that it has found before', async () => {
    const { source, readsOf, end } = setLog()
    const index = new SeqIndex()
    const seek = (seq: number) => readsOf(() => index.seekSeq(source, seq, end))
    const first = await seek(1234)
    expect(first).toBeGreaterThan(0)
    expect(await seek(1234)).toBeLessThan(first)
    expect(await seek(1235)).toBeLessThan(first)
    index.forget()
    expect(await seek(1234)).toBe(first)
  })

  test('needs no read to find a place that it has learnt', async () => {
    const { source, offsets, readsOf, end } = setLog()
    const index = new SeqIndex()
    index.learn(1000, offsets[999]!)
    expect(await readsOf(async () => expect(await index.seekSeq(source, 1000, end)).toBe(offsets[999]))).toBe(0)
  })
})
