/** What a text shows, and when, must not depend on whether it begins like a secret. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor } from '../../src/security/redaction/redactor.ts'

const OWN = 'ghp_4f9sK2mQx7Lr0aZt'
const SERVER_KEY = 'b7e1f0c2d9a84563'

/** One for all: what it is made of takes longer to make than a text to read. */
const redactor = redactorOf()

function redactorOf() {
  const redactor = createRedactor()
  redactor.set('GITHUB_TOKEN', OWN)
  redactor.set('PASSWORD', 'correct "horse" é%41\\n')
  redactor.setServerKey('OPENHANDS_MASTER_KEY', SERVER_KEY)
  redactor.setServerKey('LLM_API_KEY', `sk-${'0123456789abcdef'.repeat(4)}`)
  return redactor
}

/** For each character another of the same width and kind, which is in no secret at its place. */
const unlike = (text: string) =>
  text
    .replaceAll(/[a-z]/g, (c) => (c === 'z' ? 'y' : String.fromCharCode(c.charCodeAt(0) + 1)))
    .replaceAll(/[0-8]/g, '9')

/** Sizes of what is shown and held after each piece, and of what is shown by `end`. */
function seen(pieces: readonly string[], end: 'flush' | 'release') {
  const texts = redactor.stream()
  const bytes = redactor.byteStream()
  const sizes = pieces.map((piece) => [
    texts.push(piece).length,
    texts.held,
    bytes.push(Buffer.from(piece)).length,
    bytes.held,
  ])
  return [...sizes, [texts[end]().length, texts.held, bytes[end]().length, bytes.held]]
}

const around = fc.string({ unit: fc.constantFrom(...Array.from('xyz .,;\n\t{}"')), maxLength: 60 })
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 })

function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, next = 0; at < text.length; next++) {
    const length = lengths[next % lengths.length]!
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

describe.each([
  ['an own secret', OWN],
  ['a server key', SERVER_KEY],
])('a text with a part of %s', (_, secret) => {
  const guesses = fc.tuple(fc.integer({ min: 1, max: secret.length - 1 }), fc.nat(secret.length - 1))
  const guess = guesses.map(([length, from]) => secret.slice(from, from + length)).filter((part) => part !== secret)

  test('is shown, held back and given out like one without, after each piece and at the end', () => {
    fc.assert(
      fc.property(
        around,
        guess,
        around,
        sizes,
        fc.constantFrom('flush', 'release'),
        (before, part, after, cuts, end) => {
          const like = seen(cut(before + part + after, cuts), end)
          expect(like).toEqual(seen(cut(before + unlike(part) + after, cuts), end))
        },
      ),
      { numRuns: 200 },
    )
  })

  test('is as long where it was cut off', () => {
    fc.assert(
      fc.property(around, guess, (before, part) => {
        const { redactCutOff } = redactor
        expect(redactCutOff(before + part).length).toBe(redactCutOff(before + unlike(part)).length)
      }),
      { numRuns: 200 },
    )
  })

  test('is as it was where it is whole', () => {
    fc.assert(
      fc.property(around, guess, around, (before, part, after) => {
        expect(redactor.redact(before + part + after)).toBe(before + part + after)
      }),
      { numRuns: 200 },
    )
  })
})

test('every prefix of a secret, in every form, leaves as much held back as what is unlike it', () => {
  const forms = [
    (text: string) => text,
    (text: string) => Array.from(text, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
    (text: string) => Array.from(text, (c) => `%${c.charCodeAt(0).toString(16)}`).join(''),
    (text: string) => Buffer.from(text).toString('base64').replaceAll(/[=/+]/g, 'A'),
  ]
  for (const secret of [OWN, SERVER_KEY]) {
    for (const write of forms) {
      for (let length = 1; length < secret.length; length++) {
        const part = secret.slice(0, length)
        const heldOf = (text: string) => {
          const stream = redactor.stream()
          stream.push('It is ')
          stream.push(text)
          return stream.held
        }
        expect(heldOf(write(part))).toBe(heldOf(write(unlike(part))))
      }
    }
  }
})

test('server keys are in no stream, not even whole, and all of one is taken out of whole texts', () => {
  const stream = redactor.stream()
  expect(stream.push(`${SERVER_KEY}!`) + stream.flush()).toBe(`${SERVER_KEY}!`)
  expect(redactor.redact(`[${SERVER_KEY}]`)).toBe('[<secret:OPENHANDS_MASTER_KEY>]')
  expect(redactor.redact(Buffer.from(SERVER_KEY).toString('base64'))).toContain('<secret:OPENHANDS_MASTER_KEY>')
})

test('with server keys only, a stream is not searched at all', () => {
  const redactor = createRedactor()
  redactor.setServerKey('OPENHANDS_MASTER_KEY', SERVER_KEY)
  const bytes = Buffer.from(SERVER_KEY)
  expect(redactor.byteStream().push(bytes)).toBe(bytes)
  expect(redactor.redactCutOff(SERVER_KEY.slice(0, -1))).toBe(SERVER_KEY.slice(0, -1))
})

test('a text full of what begins like a server key takes as long as any other', () => {
  const text = (part: string) => part.repeat(40_000 / part.length)
  const [like, other] = [text(SERVER_KEY.slice(0, 10)), text(unlike(SERVER_KEY.slice(0, 10)))]
  const timeOf = (whole: string) => {
    const before = performance.now()
    redactor.redact(whole)
    // oxlint-disable-next-line tests/elapsed -- the shortest of many is compared with another
    return performance.now() - before
  }
  // The shortest of many: the rest is what else the machine had to do. It was four times as long.
  let [shortest, shortestOther] = [Infinity, Infinity]
  const ratio = () => Math.max(shortest, shortestOther) / Math.min(shortest, shortestOther)
  for (let round = 0; round < 50 || (round < 2000 && ratio() >= 2); round++) {
    shortest = Math.min(shortest, timeOf(like))
    shortestOther = Math.min(shortestOther, timeOf(other))
  }
  expect(ratio()).toBeLessThan(2)
})
