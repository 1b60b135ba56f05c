import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'

function hiding(...secrets: [name: string, value: string][]) {
  const redactor = createRedactor()
  for (const [name, value] of secrets) redactor.set(name, value)
  return redactor
}

const percent = (text: string) => encodeURIComponent(text)
const strictPercent = (text: string) =>
  percent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
const lowerHex = (text: string) => text.replace(/%../g, (code) => code.toLowerCase())
const asciiJson = (text: string) =>
  JSON.stringify(text)
    .slice(1, -1)
    .replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** How programs write the same value. */
const FORMS: [name: string, write: (text: string) => string][] = [
  ['as it is', (text) => text],
  ['in a JSON string', (text) => JSON.stringify(text).slice(1, -1)],
  ['in a JSON string of ASCII only', asciiJson],
  ['URL-encoded', percent],
  ['URL-encoded with every reserved character', strictPercent],
  ['URL-encoded with small hex digits', (text) => lowerHex(strictPercent(text))],
  ['URL-encoded as a path', (text) => percent(text).replaceAll('%2F', '/')],
  ['as a form field', (text) => strictPercent(text).replaceAll('%20', '+')],
]

// None of the characters around it is one of a secret's own forms.
const text = (chars: Iterable<string>, minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(...chars), { minLength, maxLength }).map((each) => each.join(''))
const around = text('§¶ \n', 0, 5)
const secret = text('abcXYZ019-._~+/=%&?#$<>"\\\'!()*é😀 ', 8, 40).filter((value) => value === value.trim())

test('a text in which capitals mean nothing is searched for a secret in any case, and stays as it is without one', () => {
  const { redactAnyCase, set } = hiding(['TOKEN', 'Value-Of-Token'])
  expect(redactAnyCase('a.VALUE-of-token.Test')).toBe('a.<secret:TOKEN>.test')
  expect(redactAnyCase('Other.Test')).toBe('Other.Test')
  set('OTHER', 'Other.Test')
  expect(redactAnyCase('Other.Test')).toBe('<secret:OTHER>')
  expect(createRedactor().redactAnyCase('Value-Of-Token')).toBe('Value-Of-Token')
})

describe.each(FORMS)('a value written %s', (_, write) => {
  test('is replaced by its name, and nothing around it is touched', () => {
    fc.assert(
      fc.property(secret, around, around, (value, before, after) => {
        expect(hiding(['TOKEN', value]).redact(`${before}${write(value)}${after}${write(value)}`)).toBe(
          `${before}<secret:TOKEN>${after}<secret:TOKEN>`,
        )
      }),
      { numRuns: 300 },
    )
  })
})

test.each(['base64', 'base64url'] as const)('a value inside %s is found whatever surrounds it', (encoding) => {
  fc.assert(
    fc.property(secret, fc.uint8Array({ maxLength: 7 }), fc.uint8Array({ maxLength: 7 }), (value, before, after) => {
      const encoded = Buffer.concat([before, Buffer.from(value), after]).toString(encoding)
      const redacted = hiding(['TOKEN', value]).redact(encoded)
      expect(redacted).toContain('<secret:TOKEN>')
      // What is left of the value is at most the characters that it shares with what stands beside it.
      expect(redacted.replace('<secret:TOKEN>', '').length).toBeLessThanOrEqual(
        Math.ceil((before.length + after.length) / 3) * 4 + 8,
      )
    }),
  )
})

test('a value that is the beginning of another does not hide the rest of the longer one', () => {
  const { redact } = hiding(['SHORT', 'abcdefgh'], ['LONG', 'abcdefgh-and-more'])
  expect(redact('abcdefgh-and-more, abcdefgh')).toBe('<secret:LONG>, <secret:SHORT>')
})

test('characters that are special in patterns or replacements are literal', () => {
  const { redact } = hiding(['A', '.*.*.*.*'], ['B', '$&$1$`$$$'])
  expect(redact('innocent words .*.*.*.* $&$1$`$$$')).toBe('innocent words <secret:A> <secret:B>')
})

test('short values are not looked for: they would hit innocent text', () => {
  expect(hiding(['PIN', '1234567']).redact('1234567')).toBe('1234567')
})

test('a value with a lone surrogate is redacted, too', () => {
  const { redact } = hiding(['ODD', '\ud83dabcdefgh'])
  expect(redact('x\ud83dabcdefgh')).toBe('x<secret:ODD>')
})

test('a value can be replaced and removed', () => {
  const redactor = hiding(['TOKEN', 'first-value'])
  redactor.set('TOKEN', 'second-value')
  expect(redactor.redact('first-value second-value')).toBe('first-value <secret:TOKEN>')
  redactor.delete('TOKEN')
  expect(redactor.redact('first-value second-value')).toBe('first-value second-value')
})

test('a redactor without values returns text unchanged', () => {
  expect(createRedactor().redact('anything')).toBe('anything')
})

test('a stream of bytes holds back what may begin a secret, and gives it out when it is over or released', () => {
  const redactor = hiding(['TOKEN', 'secret-word'])
  const stream = redactor.byteStream()
  const push = (text: string) => Buffer.from(stream.push(Buffer.from(text))).toString()
  const whole = Buffer.from('nothing of it\n')
  expect([stream.push(whole), stream.held]).toEqual([whole, 0])
  const begun = push('a secret-')
  expect(stream.held).toBe('a secret-'.length - begun.length)
  expect(stream.held).toBeGreaterThan(0)
  expect([begun + push('word\n'), stream.held]).toEqual(['a <secret:TOKEN>\n', 0])
  expect([push('secret-'), stream.release().toString(), stream.held]).toEqual(['', 'secret-', 0])
  expect([push('\nsecret-'), stream.flush().toString(), stream.held]).toEqual(['\n', 'secret-', 0])
})
