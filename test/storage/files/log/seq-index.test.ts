/** An event is found in a log by a few small reads, and by fewer where reads before have shown the way. */
import { beforeEach, describe, expect, test } from 'vitest'
import { SeqIndex } from '../../../../src/storage/files/log/seq-index.ts'
import { uuid7 } from '../../../../src/lib/uuid7.ts'

const COUNT = 4000
const FIRST_MS = Date.parse('2026-01-01T00:00:00.000Z')
/** As near to the event as a search ends, and the largest line but the giant one. */
const NEAR_BYTES = 16 * 1024
const GIANT_SEQ = 1234
const GIANT_BYTES = 300_000

/** A log with lines of different sizes, one event a second, and one line that is larger than a tenth of all others. */
function makeLog() {
  const conversation = uuid7()
  const lines = Array.from({ length: COUNT }, (_, index) => {
    const seq = index + 1
    const timestamp = new Date(FIRST_MS + 1000 * seq).toISOString()
    const text = 'x'.repeat(seq === GIANT_SEQ ? GIANT_BYTES : (seq * 37) % 900)
    const header = { seq, type: 'UserMessage', id: uuid7(FIRST_MS + 1000 * seq), timestamp, source: 'user', version: 1 }
    return `${JSON.stringify({ ...header, conversation_id: conversation, content: text })}\n`
  })
  const offsets: number[] = []
  let offset = 0
  for (const line of lines) {
    offsets.push(offset)
    offset += line.length
  }
  return {
    bytes: Buffer.from(lines.join('')),
    offsetOf: (seq: number) => offsets[seq - 1]!,
    end: { head: COUNT, offset },
  }
}

describe('the index of a log', () => {
  const { bytes, offsetOf, end } = makeLog()
  let reads: number
  let index: SeqIndex
  const source = {
    read: (position: number, length: number) => {
      reads++
      return Promise.resolve(bytes.subarray(position, position + length))
    },
  }
  beforeEach(() => {
    reads = 0
    index = new SeqIndex()
  })

  /** What is between the found line and the event is read in vain. */
  const expectNear = (offset: number, seq: number) => {
    expect(offset === 0 || bytes[offset - 1] === 10, `a line begins at ${offset}, for ${seq}`).toBe(true)
    expect(offset).toBeLessThanOrEqual(offsetOf(seq))
    expect(offsetOf(seq) - offset).toBeLessThan(
      2 * NEAR_BYTES + (seq > GIANT_SEQ && seq < GIANT_SEQ + 80 ? GIANT_BYTES : 0),
    )
  }

  test('finds a line at or shortly before each event', async () => {
    for (let seq = 1; seq <= COUNT; seq += 53) {
      index.forget()
      reads = 0
      expectNear(await index.seekSeq(source, seq, end), seq)
      expect(reads, `reads for ${seq}`).toBeLessThan(25)
    }
    for (const seq of [GIANT_SEQ - 1, GIANT_SEQ, GIANT_SEQ + 1, COUNT])
      expectNear(await index.seekSeq(source, seq, end), seq)
  })

  test('finds a line at or shortly before a time', async () => {
    for (let seq = 1; seq <= COUNT; seq += 101)
      expectNear(await index.seekTime(source, FIRST_MS + 1000 * seq, end), seq)
    expect(await index.seekTime(source, 0, end)).toBe(0)
    expectNear(await index.seekTime(source, FIRST_MS + 1000 * COUNT, end), COUNT)
  })

  test('needs no read for an event whose place it has learnt', async () => {
    index.learn(700, offsetOf(700))
    expect(await index.seekSeq(source, 700, end)).toBe(offsetOf(700))
    expect(reads).toBe(0)
    expectNear(await index.seekSeq(source, 703, end), 703)
  })

  test('learns from each search: the same one again needs no further reads, until it forgets', async () => {
    await index.seekSeq(source, 3000, end)
    const first = reads
    expect(first).toBeGreaterThan(1)
    await index.seekSeq(source, 3000, end)
    const second = reads - first
    expect(second).toBeLessThan(first)
    reads = 0
    index.forget()
    await index.seekSeq(source, 3000, end)
    expect(reads).toBe(first)
  })

  test('stays right when it has learnt all lines, in any order', async () => {
    for (let step = 0; step < COUNT; step++) {
      const seq = ((step * 1657) % COUNT) + 1
      index.learn(seq, offsetOf(seq))
    }
    for (let seq = 1; seq <= COUNT; seq += 97) expectNear(await index.seekSeq(source, seq, end), seq)
    // Between two places that it knows, the way is short.
    expect(reads).toBeLessThan(COUNT / 20)
  })
})
