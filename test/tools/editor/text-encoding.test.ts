import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeText, encodeText } from '../../../src/tools/editor/text-encoding.ts'
import { anyText } from '../../support/any-text.ts'
import { effort } from '../../support/patience.ts'

const bytes = (...values: number[]) => Buffer.from(values)

describe('text is recognised by its bytes', () => {
  test.each([
    ['plain', Buffer.from('grün 😀'), { encoding: 'utf-8', hasBom: false, text: 'grün 😀' }],
    ['empty', Buffer.alloc(0), { encoding: 'utf-8', hasBom: false, text: '' }],
    ['UTF-8 with a mark', Buffer.from('\uFEFFgrün'), { encoding: 'utf-8', hasBom: true, text: 'grün' }],
    [
      'UTF-16, small end first',
      Buffer.from('\uFEFFgrün 😀', 'utf16le'),
      { encoding: 'utf-16le', hasBom: true, text: 'grün 😀' },
    ],
    [
      'UTF-16, big end first',
      Buffer.from('\uFEFFgrün', 'utf16le').swap16(),
      { encoding: 'utf-16be', hasBom: true, text: 'grün' },
    ],
    ['what is no UTF-8', Buffer.from('grün', 'latin1'), { encoding: 'latin-1', hasBom: false, text: 'grün' }],
    ['with colours of a terminal', Buffer.from('\x1b[31mred\x1b[0m'), { encoding: 'utf-8' }],
    ['with a second mark, which belongs to the text', Buffer.from('\uFEFF\uFEFFa'), { hasBom: true, text: '\uFEFFa' }],
  ])('%s', (_, given, expected) => {
    expect(decodeText(given)).toMatchObject(expected)
  })

  test.each([
    ['a NUL', bytes(0x61, 0, 0x62)],
    ['an executable', bytes(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0)],
    ['packed data that happens to have no NUL', bytes(0x1f, 0x8b, 0x08, 0x99, 0x01, 0x02, 0x03, 0xff, 0x04)],
    ['half a UTF-16 character', bytes(0xff, 0xfe, 0x61)],
    ['half a UTF-16 pair', bytes(0xff, 0xfe, 0x3d, 0xd8)],
    ['UTF-32', bytes(0xff, 0xfe, 0, 0, 0x61, 0, 0, 0)],
    ['a mark of UTF-8 before what is none', bytes(0xef, 0xbb, 0xbf, 0xff)],
  ])('%s is not text', (_, given) => {
    expect(decodeText(given)).toBeUndefined()
  })
})

test('whatever is taken for text is the same bytes again', () => {
  const marks = fc.constantFrom(bytes(), bytes(0xef, 0xbb, 0xbf), bytes(0xff, 0xfe), bytes(0xfe, 0xff))
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    anyText({ maxLength: 20 }).map((text) => Buffer.from(text)),
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => Buffer.from(text, 'utf16le')),
  )
  fc.assert(
    fc.property(marks, body, (mark, rest) => {
      const given = Buffer.concat([mark, rest])
      const decoded = decodeText(given)
      if (decoded) expect(encodeText(decoded)).toEqual(given)
    }),
    { numRuns: effort(150, 10_000) },
  )
})

test('a character that the encoding cannot express is refused, not replaced', () => {
  expect(encodeText({ text: '€', encoding: 'latin-1', hasBom: false })).toBeUndefined()
  for (const encoding of ['utf-8', 'utf-16le', 'utf-16be', 'latin-1'] as const) {
    expect(encodeText({ text: '\ud83d', encoding, hasBom: false })).toBeUndefined()
  }
})
