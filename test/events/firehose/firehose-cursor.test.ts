/** Cursors of the firehose: opaque, and the same after a restart. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeCursor, encodeCursor } from '../../../src/events/firehose/firehose-cursor.ts'

const EPOCH = '00112233445566ff'
const OTHER = 'ff112233445566ff'
const position = fc.nat(2 ** 48 - 1)
const INVALID = expect.objectContaining({ code: 'invalid_cursor' })

test('a cursor leads to its position, in any order of indexes', () => {
  fc.assert(
    fc.property(position, (at) => {
      const cursor = encodeCursor(EPOCH, at)
      encodeCursor(OTHER, at)
      expect(decodeCursor(encodeCursor(EPOCH, at), EPOCH)).toBe(at)
      expect(encodeCursor(EPOCH, at)).toBe(cursor)
      expect(cursor).toMatch(/^[\w-]{22}$/)
    }),
  )
})

test('cursors do not show how far apart they are', () => {
  const [first, second] = [1, 2].map((at) => Buffer.from(encodeCursor(EPOCH, at), 'base64url'))
  const same = first!.filter((byte, at) => byte === second![at]).length
  expect(same).toBeLessThan(5)
})

test('a cursor of a version that did not encrypt still leads to its position', () => {
  const plain = Buffer.from(`${EPOCH}00000000002a`, 'hex').toString('base64url')
  expect(decodeCursor(plain, EPOCH)).toBe(42)
})

test('an invalid cursor of this index is refused', () => {
  const cursor = encodeCursor(EPOCH, 7)
  const broken = [encodeCursor(OTHER, 7), cursor.slice(1), `${cursor}A`, `A${cursor.slice(1)}`, '', '1', '!'.repeat(22)]
  for (const each of broken) expect(() => decodeCursor(each, EPOCH)).toThrow(INVALID)
  const anything = fc.string().filter((text) => text !== '0')
  fc.assert(
    fc.property(anything, (text) => {
      expect(() => decodeCursor(text, EPOCH)).toThrow(INVALID)
    }),
  )
})
