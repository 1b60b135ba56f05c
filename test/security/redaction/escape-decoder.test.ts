/** What each escape stands for, and what is none. */
import { describe, expect, test } from 'vitest'
import { decodeEscapes, utf8 } from '../../../src/security/redaction/escape-decoder.ts'

const decode = (kind: 'backslash' | 'percent', text: string): string =>
  Buffer.from(decodeEscapes(kind, Buffer.from(text))).toString()

describe('behind a backslash', () => {
  test.each([
    [String.raw`\a\b\t\n\v\f\r\e\E`, '\u0007\b\t\n\v\f\r\u001b\u001b'],
    [String.raw`\\\"\/\'\ \$\~`, `\\"/' $~`],
    [String.raw`\c\z\G\9\4`, String.raw`\c\z\G\9\4`],
    [String.raw`\x41\x7a\xC3\xa9`, 'Azé'],
    [String.raw`\x4\xg1\x`, String.raw`\x4\xg1\x`],
    [String.raw`\101\303\251\077`, 'Aé?'],
    [String.raw`\10\1018\108\400`, String.raw`\10A8\108\400`],
    [String.raw`\u0041\u00e9\uFFFD`, 'Aé\ufffd'],
    [String.raw`\u004\u00g1\u`, String.raw`\u004\u00g1\u`],
    [String.raw`\ud83d\ude00`, '😀'],
    [String.raw`\udbff\udfff`, '\u{10ffff}'],
    [String.raw`\ud800\udc00`, '\u{10000}'],
    [String.raw`\ud83d\u0041`, '\ufffdA'],
    [String.raw`\ud83d\udbff`, '\ufffd\ufffd'],
    [String.raw`\ud83d\ue000`, '\ufffd\ue000'],
    [String.raw`\ud83d\n`, '\ufffd\n'],
    [String.raw`\ud83dx`, '\ufffdx'],
    [String.raw`\ud83d`, '\ufffd'],
    [String.raw`\ude00`, '\ufffd'],
    [String.raw`\u{41}\u{1f600}\u{10ffff}`, 'A😀\u{10ffff}'],
    [String.raw`\u{}\u{110000}\u{0000041}\u{g}`, String.raw`\u{}\u{110000}\u{0000041}\u{g}`],
    [String.raw`\U00000041\U0001f600`, 'A😀'],
    [String.raw`\U00110000\U0000004`, String.raw`\U00110000\U0000004`],
    ["'\\''", "'"],
    ['\'\\"', '\'"'],
    ["''\\''", "''"],
    ['%41', '%41'],
  ])('%s is %j', (text, meaning) => {
    expect(decode('backslash', text)).toBe(meaning)
  })
})

test.each([String.raw`\x41`, String.raw`\101`, String.raw`\u0041`, String.raw`\U00000041`, String.raw`\u{000041}`])(
  '%s stands for a letter, and each beginning of it for itself, whatever is behind it',
  (escape) => {
    expect(decode('backslash', `${escape}${escape}`)).toBe('AA')
    for (let length = 1; length < escape.length; length++) {
      const begun = escape.slice(0, length)
      expect(decode('backslash', `${begun}zz`)).toBe(`${begun}zz`)
      expect(decode('backslash', begun)).toBe(begun)
      if (length > 1) expect(decode('backslash', `${begun}${escape}`)).toBe(`${begun}A`)
    }
  },
)

test.each([
  ['%41%C3%a9', 'Aé'],
  ['%4%zz%', '%4%zz%'],
  ['%%41', '%A'],
  [String.raw`\x41`, String.raw`\x41`],
])('behind a percent sign %s is %j', (text, meaning) => {
  expect(decode('percent', text)).toBe(meaning)
})

test('a character is written in as many bytes as UTF-8 has for it', () => {
  for (const character of [
    '\0',
    '\x7f',
    '\x80',
    '\u07ff',
    '\u0800',
    '\ud7ff',
    '\ue000',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
  ])
    expect(utf8(character.codePointAt(0) ?? -1), character).toEqual([...Buffer.from(character)])
  for (const half of [0xd800, 0xdfff]) expect(utf8(half)).toEqual([...Buffer.from('\ufffd')])
})
