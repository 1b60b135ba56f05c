import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { completeUtf8Length, firstUtf8Start } from '../../../src/lib/text/utf8-border.ts'

test('a text cut anywhere is decoded as a whole when its parts are cut at the border before', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), (text, at) => {
      const bytes = Buffer.from(text)
      const cut = completeUtf8Length(bytes.subarray(0, at % (bytes.length + 1)))
      expect(bytes.subarray(0, cut).toString() + bytes.subarray(cut).toString()).toBe(bytes.toString())
    }),
  )
})

test('at most three bytes are held back, and only when more can complete them', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const held = bytes.length - completeUtf8Length(bytes)
      expect(held).toBeLessThanOrEqual(3)
      if (held > 0) expect(bytes[bytes.length - held]! >= 0xc2).toBe(true)
    }),
  )
})

test('a tail starts at its first whole character', () => {
  const bytes = Buffer.from('€a')
  expect([0, 1, 2, 3].map((from) => firstUtf8Start(bytes.subarray(from)))).toEqual([0, 2, 1, 0])
})
