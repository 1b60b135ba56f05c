import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'
import type { Redactor } from '../../../src/security/redaction/redactor.ts'
import { effort } from '../../support/patience.ts'

function hiding(...values: readonly string[]): Redactor {
  const redactor = createRedactor()
  values.forEach((value, at) => redactor.set(`S${at}`, value))
  return redactor
}

/** What a stream gives out for each piece, and at its end. */
function streamed(redactor: Redactor, pieces: readonly string[]): string[] {
  const stream = redactor.stream()
  return [...pieces.map((piece) => stream.push(piece)), stream.flush()]
}

function cut(text: string, places: readonly number[]): string[] {
  const borders = [0, ...places.map((place) => place % (text.length + 1)).sort((a, b) => a - b), text.length]
  return borders.slice(1).map((end, at) => text.slice(borders[at], end))
}

const text = (chars: string, minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(...Array.from(chars)), { minLength, maxLength }).map((each) => each.join(''))
const places = fc.array(fc.nat(), { maxLength: 20 })

const WRITTEN: ((value: string) => string)[] = [
  (value) => value,
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(JSON.stringify({ value })),
  (value) => Array.from(value, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  encodeURIComponent,
  (value) => new URLSearchParams({ value }).toString(),
  (value) => Buffer.from(value).toString('base64'),
  (value) => Buffer.from(`x${value}`).toString('base64url'),
  (value) => Buffer.from(`xy${value}`.repeat(4)).toString('base64').replaceAll(/.{10}/g, '$&\n'),
]

/** Secrets of few letters, which overlap each other and themselves, and text that is made of them and of parts of them. */
const overlapping = fc
  .array(text('ab', 8, 14), { minLength: 1, maxLength: 3 })
  .chain((values) =>
    fc.record({ values: fc.constant(values), all: fc.array(fc.oneof(fc.constantFrom(...values), text('ab', 0, 9))) }),
  )
  .map(({ values, all }) => ({ values, whole: all.join('') }))

/** Secrets of all kinds of characters, and text in which they are written in every way. */
const written = fc
  .array(
    text('aZ9"\\/ +%é😀\n\'$', 8, 20).filter((value) => value.trim().length >= 8),
    { minLength: 1, maxLength: 3 },
  )
  .chain((values) => {
    const form = fc.tuple(fc.constantFrom(...values), fc.constantFrom(...WRITTEN)).map(([value, write]) => write(value))
    const part = fc.tuple(form, fc.nat()).map(([all, end]) => all.slice(0, end % all.length))
    return fc.record({
      values: fc.constant(values),
      all: fc.array(fc.oneof(form, part, text('aZ\\"u%+ é', 0, 6)), { maxLength: 8 }),
    })
  })
  .map(({ values, all }) => ({ values, whole: all.join('') }))

describe.each([
  ['secrets that overlap', overlapping],
  ['secrets in every way of writing', written],
])('a stream with %s', (_, cases) => {
  test('becomes what the whole text would have become, however it is cut, and nothing is out that would have gone', () => {
    fc.assert(
      fc.property(cases, places, ({ values, whole }, cuts) => {
        const redactor = hiding(...values)
        const expected = redactor.redact(whole)
        let soFar = ''
        for (const piece of streamed(redactor, cut(whole, cuts))) {
          soFar += piece
          expect(expected.startsWith(soFar)).toBe(true)
        }
        expect(soFar).toBe(expected)
      }),
      { numRuns: effort(75, 10_000) },
    )
  })

  test('of bytes gives the same result', () => {
    fc.assert(
      fc.property(cases, places, ({ values, whole }, cuts) => {
        const redactor = hiding(...values)
        const stream = redactor.byteStream()
        const pieces = cut(Buffer.from(whole).toString('latin1'), cuts).map((piece) => Buffer.from(piece, 'latin1'))
        const out = [...pieces.map((piece) => Buffer.from(stream.push(piece))), stream.flush()]
        expect(Buffer.concat(out).toString()).toBe(redactor.redact(whole.toWellFormed()))
      }),
      { numRuns: effort(75, 10_000) },
    )
  })
})

test('all that belongs to any occurrence goes, and the fewest that cover it are named', () => {
  fc.assert(
    fc.property(overlapping, ({ values, whole }) => {
      expect(hiding(...values).redact(whole)).toBe(redactPlainly(values, whole))
    }),
    { numRuns: effort(75, 10_000) },
  )
})

/** Every occurrence by looking everywhere, every step by looking at all occurrences. */
function redactPlainly(values: readonly string[], whole: string): string {
  const found = values
    .flatMap((value, at) =>
      Array.from(whole, (_, start) => ({
        name: `S${values.indexOf(value, 0) === at ? at : values.indexOf(value)}`,
        start,
        end: start + value.length,
        value,
      })),
    )
    .filter(({ start, value }) => whole.startsWith(value, start))
  let out = ''
  for (let at = 0; at < whole.length;) {
    const next = found.filter(({ start, end }) => start <= at && end > at)
    const furthest = Math.max(...next.map(({ end }) => end))
    const chosen = next.filter(({ end }) => end === furthest).sort((a, b) => a.start - b.start)[0]
    out += chosen ? `<secret:${chosen.name}>` : whole[at]
    at = chosen ? chosen.end : at + 1
  }
  return out
}

describe('what is held back', () => {
  test('is as much as the longest secret has in base64, less one, whatever it is', () => {
    const stream = hiding('abcdefgh-1').stream()
    const longest = Buffer.from('abcdefgh-1').toString('base64').replace(/=+$/, '').length
    const text = 'abcdefgh- and more and more and more'
    expect(stream.push(text)).toBe(text.slice(0, 1 - longest))
    expect(stream.held).toBe(longest - 1)
    expect(stream.flush()).toBe(text.slice(1 - longest))
  })

  test('contains nothing of a finished line if no secret continues after a line break', () => {
    const stream = hiding('abcdefgh-1').stream()
    expect(stream.push('abcd\nabcd')).toBe('abcd\n')
    expect(stream.push('efgh-1\n')).toBe('<secret:S0>\n')
    const ofLines = hiding('abcdefgh-1', 'ab\ncd\nef\ngh').stream()
    expect(ofLines.push('ab\ncd\nef\n')).toBe('')
    expect(ofLines.push('gh, ') + ofLines.flush()).toBe('<secret:S1>, ')
  })

  test('continues after the line breaks of wrapped base64', () => {
    const value = Array.from({ length: 40 }, (_, at) => `part-${at}`).join('')
    const redactor = hiding(value, 'a-secret-of\nseveral-lines')
    const stream = redactor.stream()
    const whole = `${Buffer.from(value).toString('base64').replaceAll(/.{76}/g, '$&\n')}\n`
    const pieces = whole.split(/(?<=\n)/).map((line) => stream.push(line))
    expect(pieces.join('') + stream.flush()).toMatch(/^<secret:S0>={0,2}\n$/)
  })

  test.each(['\n', '\r\n', '\r\r\n', '\n\n'])(
    'continues wherever wrapped base64 is cut, with the line break %j',
    (lineBreak) => {
      const value = Array.from({ length: 20 }, (_, at) => `part-${at}`).join('')
      const redactor = hiding(value)
      const whole = `${Buffer.from(value).toString('base64').replaceAll(/.{64}/g, `$&${lineBreak}`)}\r\n`
      for (let at = 0; at < whole.length; at++) {
        const stream = redactor.stream()
        const pieces = [
          stream.push(whole.slice(0, at)),
          stream.push(whole.slice(at, at + 1)),
          stream.push(whole.slice(at + 1)),
        ]
        expect(pieces.join('') + stream.flush(), `cut at ${at}`).toMatch(/^<secret:S0>={0,2}\r\n$/)
      }
    },
  )

  test('is never longer than the longest way to write the longest secret', () => {
    const longest = String.raw`\\\\u0061`.length
    fc.assert(
      fc.property(written, places, ({ values, whole }, cuts) => {
        const stream = hiding(...values).stream()
        const limit = Math.max(...values.map((value) => value.length)) * 2 * longest
        for (const piece of cut(whole, cuts)) {
          stream.push(piece)
          expect(stream.held).toBeLessThanOrEqual(limit)
        }
      }),
    )
  })

  test('is sent when the stream is handed over, and a secret that is completed later is still redacted', () => {
    const stream = hiding('abcdefgh-1', 'bcdef').stream()
    expect(stream.push('abcd') + stream.release()).toBe('abcd')
    expect(stream.push('efgh-1!') + stream.release()).toBe('<secret:S0>!')
    expect(stream.push('abcd') + stream.release() + stream.push('x') + stream.flush()).toBe('abcdx')
  })

  test('waits while a longer secret may continue, and is named by the one found', () => {
    const stream = hiding('abcdefgh', 'abcdefgh-long').stream()
    expect(stream.push('abcdefgh')).toBe('')
    expect(stream.push('-lo')).toBe('')
    expect(stream.push('ng.') + stream.release()).toBe('<secret:S1>.')
    expect(stream.push('abcdefgh-l') + stream.release(), 'a whole one is not given out').toBe('<secret:S0>-l')
  })
})

test('secrets that change in the middle of a text hold for what is not out yet', () => {
  const redactor = hiding('abcdefgh-1')
  const stream = redactor.stream()
  expect(stream.push('new-secr\n')).toBe('new-secr\n')
  expect(stream.push(' abcd')).toBe('')
  redactor.set('NEW', 'new-secret')
  expect(stream.push('efgh-1\nnew-')).toBe(' <secret:S0>\n')
  redactor.delete('S0')
  expect(stream.push('secret abcdefgh-1\n')).toBe('<secret:NEW> abcdefgh-1\n')
  redactor.delete('NEW')
  expect(stream.push('new-secret')).toBe('new-secret')
})

test('a value with white space around it is found without that, and each of its lines by itself', () => {
  const redactor = hiding(
    ' padded-value\n',
    '-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF==\n-----END KEY-----\n',
  )
  expect(redactor.redact('[padded-value]')).toBe('[<secret:S0>]')
  expect(redactor.redact('  2\tMIIEvQIBADANBg\r\n  3\tkqhkiG9w0BAQEF==')).toBe('  2\t<secret:S1>\r\n  3\t<secret:S1>')
})

test('several values of one name are all hidden', () => {
  const redactor = createRedactor()
  redactor.set('KEY', 'first-of-the-keys', 'second-of-the-keys')
  expect(redactor.redact('first-of-the-keys second-of-the-keys')).toBe('<secret:KEY> <secret:KEY>')
})

test('bytes that are not text are unchanged', () => {
  const stream = hiding('abcdefgh-1').byteStream()
  const binary = Buffer.from([0, 255, 254, 0xc3, 0x28, 128, 10])
  expect(stream.push(binary)).toBe(binary)
  expect(Buffer.from(stream.push(Buffer.concat([binary, Buffer.from('abcdefgh-1'), binary])))).toEqual(
    Buffer.concat([binary, Buffer.from('<secret:S0>'), binary]),
  )
})

test('the first 256 bytes of a long value identify it, and its continuation is redacted too', () => {
  const value = Array.from({ length: 4000 }, (_, at) => at.toString(36).padStart(4, '-')).join('')
  const redactor = hiding(value, 'abcdefgh-1')
  const whole = `abcdefgh-1 ${value} ${value.slice(0, -1)}! ${value.slice(0, 255)}! abcdefgh-1`
  const expected = `<secret:S1> <secret:S0> <secret:S0>! ${value.slice(0, 255)}! <secret:S1>`
  expect(redactor.redact(whole)).toBe(expected)
  for (const cuts of [[1000, 5000, 20000], Array.from({ length: 400 }, (_, at) => at * 97)])
    expect(streamed(redactor, cut(whole, cuts)).join('')).toBe(expected)
  const json = JSON.stringify({ value, and: JSON.stringify(value) })
  expect(redactor.redact(json)).toBe(JSON.stringify({ value: '<secret:S0>', and: '"<secret:S0>"' }))
  expect(redactor.redact(Buffer.from(value).toString('base64')).length).toBeLessThan(20)
})

test('a long value that begins like itself is found from where it begins', () => {
  const value = `${'a'.repeat(300)}b${'a'.repeat(300)}c-and-its-end`
  const redactor = hiding(value)
  expect(redactor.redact(`x${'a'.repeat(7)}${value}!`)).toBe('x<secret:S0>!')
  expect(redactor.redact(`x${value.slice(0, 500)}${value}!`)).toBe('x<secret:S0>!')
})

test('what many escapes have in common is found in any mixture of them', () => {
  const redactor = hiding('Pa$$wörd-😀-4711')
  const ways = [
    (char: string) => char,
    (char: string) => `\\u{${char.codePointAt(0)!.toString(16)}}`,
    (char: string) => `\\U${char.codePointAt(0)!.toString(16).padStart(8, '0')}`,
    (char: string) => encodeURIComponent(char).replace(/^[^%]/, (plain) => `%${plain.charCodeAt(0).toString(16)}`),
    (char: string) => [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join(''),
    (char: string) => [...Buffer.from(char)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join(''),
    (char: string) =>
      JSON.stringify(
        Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
          '',
        ),
      ).slice(1, -1),
  ]
  fc.assert(
    fc.property(fc.array(fc.nat(ways.length - 1), { minLength: 16, maxLength: 16 }), (chosen) => {
      const text = Array.from('Pa$$wörd-😀-4711', (char, at) => ways[chosen[at]!]!(char)).join('')
      expect(redactor.redact(`[${text}]`)).toBe('[<secret:S0>]')
    }),
  )
})

test('composed and decomposed characters are the same', () => {
  const redactor = hiding('pässwörd-é')
  expect(redactor.redact(`[${'pässwörd-é'.normalize('NFD')}]`)).toBe('[<secret:S0>]')
  expect(hiding('pässwörd-é'.normalize('NFD')).redact('[pässwörd-é]')).toBe('[<secret:S0>]')
})
