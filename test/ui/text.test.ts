/** Text that an agent, a program or a file wrote, as the dashboard shows it. */
import { describe, expect, test } from 'vitest'
import { ansiRuns } from '../../src/ui/text/ansi.ts'
import { markdownTokens, tokensAfter } from '../../src/ui/text/markdown-tokens.ts'
import { browserName } from '../../src/ui/text/browser-name.ts'
import { withoutMarks } from '../../src/ui/text/plain.ts'
import { short, visible, visibleProse } from '../../src/ui/text/visible.ts'

describe('text that somebody decides about', () => {
  test.each([
    ['an override of the direction', 'rm -rf \u202E/ohce', 'rm -rf ⟦U+202E⟧/ohce'],
    ['a character without width', 'ls\u200Bx', 'ls⟦U+200B⟧x'],
    ['a control', 'a\u0008b\u001b[1A', 'a⟦U+0008⟧b⟦U+001B⟧[1A'],
    ['a carriage return', 'harmless\rrm -rf /', 'harmless⟦U+000D⟧rm -rf /'],
    ['a tag character', 'a\u{E0041}b', 'a⟦U+E0041⟧b'],
    ['a filler that looks like a blank', 'a\u3164b', 'a⟦U+3164⟧b'],
    ['a variation selector', 'a\uFE0Fb', 'a⟦U+FE0F⟧b'],
    ['a mark without a shape', 'r\u034Fm', 'r⟦U+034F⟧m'],
    ['an inherent vowel without a shape', 'r\u17B4m', 'r⟦U+17B4⟧m'],
    ['a Braille cell without dots', 'a\u2800b', 'a⟦U+2800⟧b'],
    ['half of a character', 'a\uD800b', 'a⟦U+D800⟧b'],
  ])('shows %s by its number', (_name, text, shown) => expect(visible(text)).toBe(shown))

  test('keeps tabs, lines and the letters of any language', () => {
    const text = 'a\tb\nžluťoučký 漢字 👍'
    expect(visible(text)).toBe(text)
  })
})

test('prose shows what turns its direction, and joined emoji stay whole', () => {
  expect(visibleProse('👩‍💻 \u202Eabc')).toBe('👩‍💻 ⟦U+202E⟧abc')
})

test('a name has one line of at most so many characters', () => {
  expect(short('a\n\n  b')).toBe('a b')
  expect(short('x'.repeat(500), 10)).toBe(`${'x'.repeat(9)}…`)
})

test('a line of a list has prose without the marks of Markdown, and code as it is', () => {
  expect(withoutMarks('## What was found The **whole** `file`, see [the issue](https://example.com/17).')).toBe(
    ' What was found The whole file, see the issue.',
  )
  expect(withoutMarks('#17 __proto__ a*b [x] (y)')).toBe('#17 __proto__ a*b [x] (y)')
})

test('a browser has a short name, and another program keeps its own', () => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'
  expect(browserName(chrome)).toBe('Chrome, Linux')
  expect(browserName(`${chrome} Edg/140.0`)).toBe('Edge, Linux')
  expect(browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1')).toBe(
    'Safari, iPhone',
  )
  expect(['curl/8.14', 'Mozilla/5.0 (unknown)', ''].map(browserName)).toEqual([
    'curl/8.14',
    'Mozilla/5.0 (unknown)',
    '',
  ])
})

describe('the output of a program', () => {
  const texts = (output: string) =>
    ansiRuns(output)
      .map(({ text }) => text)
      .join('')

  test('has its colours as classes', () => {
    expect(ansiRuns('\u001b[1;31mred\u001b[0m plain')).toEqual([
      { text: 'red', className: 'bold ansi-1' },
      { text: ' plain', className: '' },
    ])
  })

  test.each([
    ['a title', '\u001b]0;pwned\u0007text', 'text'],
    ['a link', '\u001b]8;;https://example.com\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['moves of the cursor', 'a\u001b[2Ab\u001b[Kc', 'abc'],
    ['256 colours and true colours', '\u001b[38;5;196ma\u001b[48;2;1;2;3mb', 'ab'],
    ['a sequence that was cut', 'text\u001b[3', 'text'],
    ['a string that has no end', 'text\u001b]0;never ends', 'text'],
  ])('loses %s', (_name, output, text) => expect(texts(output)).toBe(text))

  test('shows a progress bar as it was in the end', () => {
    expect(texts('10 %\r50 %\r100 %\r\ndone')).toBe('100 %\ndone')
  })

  test('shows a hidden character by its number', () => expect(texts('a\u202Eb')).toBe('a⟦U+202E⟧b'))
})

describe('Markdown of an agent', () => {
  const textIn = (tokens: ReturnType<typeof markdownTokens>): string => (tokens ?? []).map(({ raw }) => raw).join('')

  /** Each took the page seconds, and more with the square of its length, or ended the lexer. */
  test.each([
    ['emphasis in a word', '_a_'.repeat(4000)],
    ['an address without an end', `${'a'.repeat(90_000)}@`],
    ['brackets that never close', '['.repeat(30_000)],
    ['quotations in each other', `${'> '.repeat(10_000)}x`],
    ['lists in each other', '- '.repeat(10_000)],
  ])('with %s is read in parts, and is whole', (_name, text) => {
    expect(textIn(markdownTokens(text))).toBe(text)
  })

  test('is read in parts that end with a word', () => {
    const [paragraph] = markdownTokens(`${'a **bold** word '.repeat(200)}end`) ?? []
    const types = new Set((paragraph as { tokens: { type: string }[] }).tokens.map(({ type }) => type))
    expect(types).toEqual(new Set(['text', 'strong']))
  })

  test('has the same blocks while it is written and afterwards', () => {
    const text =
      '# a\n\nb *c*\n\n- d\n- e\n\n  f\n\n```ts\ng\n\nh\n```\n\n> i\nj\n\n|k|l|\n|-|-|\n|m|n|\n\nend\n===\n\no'
    let before = { text: '', tokens: markdownTokens('') ?? [] }
    for (let length = 1; length <= text.length; length++) {
      const written = text.slice(0, length)
      before = { text: written, tokens: tokensAfter(before, written) ?? [] }
      expect(JSON.stringify(before.tokens), written).toBe(JSON.stringify(markdownTokens(written)))
    }
  })
})
