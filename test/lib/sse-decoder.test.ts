import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSseDecoder } from '../../src/lib/sse-decoder.ts'

function decode(...pieces: string[]) {
  const decoder = createSseDecoder()
  return pieces.flatMap((piece) => decoder.push(piece))
}

describe('an event stream', () => {
  test('gives each event with its type, data and the last id', () => {
    expect(decode('id: 7\nevent: Result\ndata: {}\n\ndata: x\n\n')).toEqual([
      { event: 'Result', data: '{}', id: '7' },
      { event: 'message', data: 'x', id: '7' },
    ])
  })

  test('joins several data lines and removes one space after the colon', () => {
    expect(decode('data: a\ndata:  b\ndata\n\n')).toEqual([{ event: 'message', data: 'a\n b\n', id: '' }])
  })

  test('ignores comments, unknown fields and events without data', () => {
    expect(decode(': ping\n\nretry: 1000\n\nevent: empty\n\nfoo: bar\ndata: x\n\n')).toMatchObject([{ data: 'x' }])
  })

  test('keeps up to 64 KiB of the lines that are not a field, for callers that know their meaning', () => {
    const decoder = createSseDecoder()
    decoder.push(': ping\nretry: 1\nid: 7\ndata: x\n\n{"error":\n  "message: no"}\n')
    expect(decoder.strayLines()).toBe('{"error":\n  "message: no"}\n')
    for (let line = 0; line < 200; line++) decoder.push(`${'x'.repeat(1000)}\n`)
    expect(decoder.strayLines().length).toBeLessThan(64 * 1024)
  })

  test('ends lines with LF, CR or CRLF, also where a CRLF arrives in two pieces', () => {
    expect(decode('data: a\r', '\ndata: b\r\n\r\ndata: c\r\r')).toMatchObject([{ data: 'a\nb' }, { data: 'c' }])
  })

  test('drops an event that never ended, unless the rest is requested', () => {
    const decoder = createSseDecoder()
    expect(decoder.push('data: a')).toEqual([])
    expect(decoder.rest()).toMatchObject([{ data: 'a' }])
    expect(decoder.rest()).toEqual([])
  })

  test('is the same however it is cut', () => {
    const stream = ': hello\r\n\r\nid: 1\r\ndata: ä😀\r\n\r\nevent: e\ndata: 1\ndata: 2\n\n\ndata: last\r\r'
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length)), (cuts) => {
        const borders = [0, ...cuts.sort((a, b) => a - b), stream.length]
        const pieces = borders.slice(1).map((end, at) => stream.slice(borders[at], end))
        expect(decode(...pieces)).toEqual(decode(stream))
      }),
    )
  })
})
