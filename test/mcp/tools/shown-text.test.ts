/** What a server says is shown without hidden characters and without secrets, wherever it is cut. */
import { describe, expect, test } from 'vitest'
import { createShowText } from '../../../src/mcp/tools/shown-text.ts'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'

const SECRET = 'the-secret-of-this-test'
const redactor = createRedactor()
redactor.set('NAME', SECRET)
const show = createShowText(redactor)
/** A part of a secret this long tells something. */
const partsOf = (secret: string) => [secret.slice(0, 8), secret.slice(-8)]

test('hidden characters in a secret do not hide it', () => {
  expect(show(`a ${SECRET.split('').join('\u200b')} b`, 100)).toBe('a <secret:NAME> b')
  expect(show(`a ${SECRET.split('').join('\u00ad')} b`, 100, 'end')).toBe('a <secret:NAME> b')
})

describe('no part of a secret is left where the text is cut', () => {
  test.each([0, 5, 17, 23, 90, 95, 100, 105, 790, 795, 799, 805])('after %d characters', (at) => {
    const text = 'x'.repeat(at) + SECRET + 'y'.repeat(2000)
    for (const shown of [show(text, 100), show(text.split('').toReversed().join(''), 100)])
      for (const part of partsOf(SECRET)) expect(shown).not.toContain(part)
    const end = show('y'.repeat(2000) + SECRET + 'x'.repeat(at), 100, 'end')
    for (const part of partsOf(SECRET)) expect(end).not.toContain(part)
  })

  test('when redacting makes the text much shorter', () => {
    const shown = show(SECRET.repeat(100), SECRET.length * 2)
    for (const part of partsOf(SECRET)) expect(shown).not.toContain(part)
  })
})
