/** What a stream holds while its secrets change, and texts that are shorter than all secrets. */
import { expect, test } from 'vitest'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'
import { createSharedAutomata } from '../../../src/security/redaction/shared-automata.ts'
import { TextRedactor } from '../../../src/security/redaction/stream-redactor.ts'

test('what a stream holds goes out once when there is nothing left to look for', () => {
  for (const end of ['push', 'flush', 'release'] as const) {
    const redactor = createRedactor()
    redactor.set('TOKEN', 'long-enough')
    const stream = redactor.stream()
    const first = stream.push('x long-en')
    expect(stream.held).toBeGreaterThan(0)
    redactor.delete('TOKEN')
    const last = end === 'push' ? stream.push('ough y') : `${stream[end]()}${stream.push('ough y')}`
    expect(first + last + stream.push(' z') + stream.flush()).toBe('x long-enough y z')
    expect(stream.held).toBe(0)
  }
})

test('a secret that is added is found in what a stream holds, and in what follows', () => {
  const redactor = createRedactor()
  redactor.set('OTHER', 'another-value')
  const stream = redactor.stream()
  const first = stream.push('long-en')
  redactor.set('TOKEN', 'long-enough')
  expect(first + stream.push('ough y') + stream.flush()).toBe('<secret:TOKEN> y')
})

test('a text that is shorter than each secret is returned as it is', () => {
  const secret = { values: ['long-enough'], isServerKey: false }
  const texts = new TextRedactor(createSharedAutomata()([['TOKEN', secret]]))
  for (const text of ['', 'long', 'long-enoug']) expect(texts.redact(text)).toBe(text)
  expect(texts.redact('long-enough')).toBe('<secret:TOKEN>')
})

test('a value that is too short is not looked for, and takes the place of the one before', () => {
  let looked = 0
  const shared = createSharedAutomata()
  const redactor = createRedactor((secrets) => (looked++, shared(secrets)))
  redactor.set('TOKEN', 'short')
  redactor.setServerKey('KEY', '          ')
  expect(redactor.redact('a short text')).toBe('a short text')
  expect(looked).toBe(0)
  redactor.set('TOKEN', 'long-enough')
  expect(redactor.redact('long-enough')).toBe('<secret:TOKEN>')
  redactor.set('TOKEN', 'short')
  expect(redactor.redact('long-enough')).toBe('long-enough')
  expect(looked).toBe(1)
})

test('the values of a name are those that were set last', () => {
  const redactor = createRedactor()
  const redacted = [['value-one', 'value-two'], ['value-one', 'value-new'], ['value-new']].map((values) => {
    redactor.set('TOKEN', ...values)
    return redactor.redact('value-one value-two value-new')
  })
  expect(redacted).toEqual([
    '<secret:TOKEN> <secret:TOKEN> value-new',
    '<secret:TOKEN> value-two <secret:TOKEN>',
    'value-one value-two <secret:TOKEN>',
  ])
})

test('a key of the server is redacted in whole texts, and is not looked for in streams', () => {
  const redactor = createRedactor()
  redactor.setServerKey('KEY', 'key-of-the-server')
  const stream = redactor.stream()
  expect(stream.push('key-of-the-server') + stream.flush()).toBe('key-of-the-server')
  expect(redactor.redact('key-of-the-server')).toBe('<secret:KEY>')
  redactor.set('KEY', 'key-of-the-server')
  expect(stream.push('key-of-the-server') + stream.flush()).toBe('<secret:KEY>')
  redactor.delete('KEY')
  expect(redactor.redact('key-of-the-server')).toBe('key-of-the-server')
})

test('without a secret a text that is cut off stays whole, and with one its end is left out', async () => {
  const redactor = createRedactor()
  expect(redactor.redactCutOff('a long-en')).toBe('a long-en')
  expect(await redactor.redactCutOffInSlices('a long-en')).toBe('a long-en')
  redactor.set('TOKEN', 'long-enough')
  const text = 'a long-enough text of which the end is long-en'
  expect(redactor.redactCutOff(text)).toMatch(/^a <secret:TOKEN> text of which/)
  expect(redactor.redactCutOff(text)).not.toContain('long-en')
  expect(await redactor.redactCutOffInSlices(text)).toBe(redactor.redactCutOff(text))
})

test('values that change by themselves are asked for before each text and each piece of a stream', () => {
  let value = 'value-one'
  const redactor = createRedactor(createSharedAutomata(), (set) => set('TOKEN', value))
  const stream = redactor.stream()
  expect(redactor.redact('value-one')).toBe('<secret:TOKEN>')
  expect(stream.push('value-one\n')).toBe('<secret:TOKEN>\n')
  value = 'value-two'
  expect(redactor.redact('value-one value-two')).toBe('value-one <secret:TOKEN>')
  value = 'value-new'
  expect(stream.push('value-two value-new\n')).toBe('value-two <secret:TOKEN>\n')
})
