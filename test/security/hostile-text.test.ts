/** No text costs more than its length, whatever it is made of and whatever the secrets are. */
import { expect, test } from 'vitest'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { processorMsOf, readingMsOf } from '../support/processor-time.ts'

const SECRET = 'ghp_4f9sK2mQx7Lr0aZt-and-more-of-it'
const TEXT_CHARS = 500_000

const hex = (char: string, digits: number) => char.charCodeAt(0).toString(16).padStart(digits, '0')
const WAYS = [
  (char: string) => char,
  (char: string) => `\\u${hex(char, 4)}`,
  (char: string) => `\\\\u${hex(char, 4)}`,
  (char: string) => `\\\\\\\\u${hex(char, 4)}`,
  (char: string) => `%${hex(char, 2)}`,
  (char: string) => `%25${hex(char, 2)}`,
  (char: string) => `\\x${hex(char, 2)}`,
  (char: string) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
]

/** The same at every run: nothing else is random about what it costs. */
function createRandom(): (limit: number) => number {
  let state = 42
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % limit
  }
}

function fill(part: () => string): string {
  let text = ''
  while (text.length < TEXT_CHARS) text += part()
  return text
}

const random = createRandom()
const mixed = (value: string) => Array.from(value, (char) => WAYS[random(WAYS.length)]!(char)).join('')
const ESCAPES = ['\\', '%', "'", 'u', 'x', '0', '6', '1', '2', '5', '\n', '\r', '+', '{', '}', 'd', '8', '3', 'a']

const HOSTILE: readonly [string, () => string][] = [
  ['a secret in random mixtures of escapes', () => mixed(SECRET)],
  ['all but the end of it', () => mixed(SECRET.slice(0, -1))],
  ['its beginning again and again', () => SECRET.slice(0, 1 + random(SECRET.length - 1))],
  ['the secret again and again', () => SECRET],
  ['one character that is the whole of another secret', () => 'a'],
  ['the same, escaped', () => '\\u0061'],
  ['almost as many of it as that has', () => `${'a'.repeat(2999)}b`],
  ['backslashes', () => '\\'.repeat(1000)],
  ['percent signs', () => '%'.repeat(1000)],
  ['quotes', () => `'\\'`],
  ['half an escape', () => '\\u00'],
  ['half a character', () => '\\ud83d'],
  ['escaped percent signs', () => '%25'],
  ['line breaks', () => '\r\n\n'],
  ['escaped line breaks', () => '\\n'],
  ['anything of escapes', () => ESCAPES[random(ESCAPES.length)]!],
  ['characters of three bytes', () => '汉'],
]

/** Of the time it takes to look at each character. States that texts could make took 100,000 times as long; this takes 10 to 200 times. */
const MOST_TIMES = 2000

test.each(HOSTILE)('%s', async (_, part) => {
  const redactor = createRedactor()
  redactor.set('TOKEN', SECRET)
  redactor.set('EQUAL', 'a'.repeat(3000))
  redactor.set('SLASHES', '\\'.repeat(40))
  redactor.set('WIDE', 'pässwörd-é')
  const text = fill(part)
  redactor.redact(text.slice(0, 10_000))
  const plain = await readingMsOf(text.length)
  expect(await processorMsOf(() => redactor.redact(text))).toBeLessThan(MOST_TIMES * plain)
  const stream = redactor.byteStream()
  const bytes = Buffer.from(text)
  const piece = (at: number) => bytes.subarray(at, at + 4096)
  const inPieces = await processorMsOf(() => {
    for (let at = 0; at < bytes.length; at += 4096) stream.push(piece(at))
    stream.flush()
  })
  expect(inPieces).toBeLessThan(MOST_TIMES * plain * (bytes.length / text.length))
})

test('what is held back of a text that is made to be held back is bounded by the secrets', () => {
  const redactor = createRedactor()
  redactor.set('TOKEN', 'a'.repeat(3000))
  for (const part of ['\\n', '\\\\\\\\u000a', '\r', '%25250a', '\\ud83d', '\\', '汉']) {
    const stream = redactor.stream()
    for (let times = 0; times < 200; times++) stream.push(part.repeat(1000))
    // 255 bytes, each of which may be an escape, of which each character may be one, …
    expect(stream.held).toBeLessThan(255 * 40)
  }
})
