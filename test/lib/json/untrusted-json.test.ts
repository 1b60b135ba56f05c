import { describe, expect, test } from 'vitest'
import { ComplexJson, parseUntrustedJson, refuseComplexJson } from '../../../src/lib/json/untrusted-json.ts'

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

describe('untrusted JSON', () => {
  test.each([
    ['100 levels', nested(100)],
    ['50,000 values', `[${'0,'.repeat(49_998)}0]`],
    ['brackets in strings', JSON.stringify('['.repeat(1000))],
    ['brackets in strings with escapes', JSON.stringify(['\\"'.repeat(10), '['.repeat(1000), '\\', '{'.repeat(1000)])],
    ['commas in strings', JSON.stringify(','.repeat(100_000))],
    ['many levels one after the other', `[${Array(500).fill(nested(90)).join(',')}]`],
  ])('is read with %s', (_what, text) => expect(parseUntrustedJson(text)).toEqual(JSON.parse(text)))

  test.each([
    ['101 levels', nested(101), 'is nested more than 100 levels deep'],
    ['100,000 levels of objects', '{"a":'.repeat(100_000), 'is nested more than 100 levels deep'],
    ['levels behind a string', `["\\\\",${nested(101)}]`, 'is nested more than 100 levels deep'],
    ['50,001 values', `[${'0,'.repeat(49_999)}0]`, 'holds more than 50000 values'],
    ['empty values', `[${'{},'.repeat(50_000)}{}]`, 'holds more than 50000 values'],
  ])('is refused with %s', (_what, text, why) => {
    expect(() => parseUntrustedJson(text)).toThrow(new ComplexJson(why))
  })

  test.each(['', '{', '"', '"\\', ']'.repeat(1000), '{"a":"'])('that is invalid is left to the parser: %j', (text) => {
    refuseComplexJson(text)
    expect(() => parseUntrustedJson(text)).toThrow(SyntaxError)
  })
})
