import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { HeadTail } from '../../../src/shell/output/head-tail.ts'

test('keeps the first and the last bytes, whatever pieces the stream comes in', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 20 })
  const limit = fc.integer({ min: 1, max: 20 })
  fc.assert(
    fc.property(pieces, limit, limit, (chunks, headLimit, tailLimit) => {
      const kept = new HeadTail({ headLimit, tailLimit })
      for (const chunk of chunks) kept.push(chunk)
      const whole = Buffer.concat(chunks)
      const rest = whole.subarray(headLimit)
      expect(kept.head()).toEqual(Buffer.from(whole.subarray(0, headLimit)))
      expect(kept.tail()).toEqual(Buffer.from(rest.subarray(Math.max(0, rest.length - tailLimit))))
      expect(kept.total).toBe(whole.length)
      expect(kept.omitted).toBe(Math.max(0, whole.length - headLimit - tailLimit))
    }),
  )
})
