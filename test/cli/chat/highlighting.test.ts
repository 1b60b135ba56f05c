/** Fenced code has the colours of its language, and nothing but colours is added. */
import { expect, test } from 'vitest'
import { highlightedLines } from '../../../src/cli/chat/render/highlighted-code.ts'
import { COMPLETE_BUDGET, markdownLines } from '../../../src/cli/chat/render/markdown-lines.ts'
import { createTheme } from '../../../src/cli/chat/render/theme.ts'
import { processorMsOf } from '../../support/processor-time.ts'
import { cleanText } from '../../../src/cli/chat/state/clean-text.ts'

const [colored, plain] = [createTheme(true), createTheme(false)]
const LANGUAGES =
  `ts c cpp go rust java kotlin csharp swift php python ruby bash dockerfile sql json yaml css html lua diff`.split(' ')
// oxlint-disable-next-line no-control-regex -- the sequences are what is removed
const withoutColors = (text: string) => text.replaceAll(/\x1b\[\d+m/g, '')
const [keyword, text, comment, number, call] = [
  ['blue', 34, 39],
  ['green', 32, 39],
  ['dim', 2, 22],
  ['yellow', 33, 39],
  ['cyan', 36, 39],
].map(
  ([, on, off]) =>
    (part: string) =>
      `\x1b[${on}m${part}\x1b[${off}m`,
) as [Paint, Paint, Paint, Paint, Paint]
type Paint = (part: string) => string

test.each([
  ['ts', 'const a = f(1) // one', [keyword('const'), call('f'), number('1'), comment('// one')]],
  [
    'python title="x"',
    "def f(): return 'a' # b",
    [keyword('def'), call('f'), keyword('return'), text("'a'"), comment('# b')],
  ],
  ['bash', 'if true; then echo "$#" # c', [keyword('if'), text('"$#"'), comment('# c')]],
  ['rust', "fn f<'a>(c: &'a str) { 'x' }", [keyword('fn'), keyword('str'), text("'x'")]],
  ['SQL', 'Select a -- c', [keyword('Select'), comment('-- c')]],
  ['json', '{"a": "b", "c": true}', [call('"a"'), text('"b"'), keyword('true')]],
  ['html', `<p class="a">don't</p>`, [keyword('<p'), text('"a"'), keyword('</p'), keyword('>')]],
  ['diff', '+a\n-b\n c', [text('+a'), '\x1b[31m-b\x1b[39m', ' c']],
])('code in %s is divided', (info, code, parts) => {
  const lines = highlightedLines(code, info, colored)!.join('\n')
  for (const part of parts) expect(lines).toContain(part)
  expect(withoutColors(lines)).toBe(code)
})

test('a string that continues in the next line has its colour there, too', () => {
  expect(highlightedLines('a = """b\n\nc"""', 'py', colored)).toEqual(['a = ' + text('"""b'), '', text('c"""')])
})

test('without the colours the text is that of the code, in every language', () => {
  const code = LANGUAGES.map((_, at) => SAMPLE.slice(at)).join('\n\n')
  for (const language of LANGUAGES) {
    expect(highlightedLines(code, language, plain), language).toEqual(code.split('\n'))
    expect(highlightedLines(code, language, colored)!.map(withoutColors), language).toEqual(code.split('\n'))
  }
})

const SAMPLE = `x = "a\\" b" + 'c' /* d\n e */ f(0x1F) # <!-- g --> \`h \${i}\` \\ é 🎉 --j\n+k "unfinished`

test('ten times more code takes about ten times longer, whatever it is', async () => {
  const hostile = [
    'a',
    '"',
    "'",
    '`',
    '/',
    '/*',
    '\\',
    '#',
    '-',
    '<',
    '<!--',
    '"""',
    '0',
    ' ',
    '\n',
    '$',
    '(',
    'a:',
    'é',
  ]
  for (const language of ['ts', 'rust', 'python', 'bash', 'sql', 'yaml', 'html', 'css']) {
    for (const unit of hostile) {
      const highlight = (chars: number) => highlightedLines(unit.repeat(chars / unit.length), language, plain)
      const short = await processorMsOf(() => Array.from({ length: 10 }, () => highlight(2000)))
      const long = await processorMsOf(() => highlight(20_000))
      // A pattern that looks at characters again and again adds more than that.
      expect(long, `${unit} in ${language}`).toBeLessThan(100 + 5 * short)
    }
  }
})

test('an unknown language, none, and very long code have one colour', () => {
  expect(highlightedLines('if', '', colored)).toBeUndefined()
  expect(highlightedLines('if', 'klingon', colored)).toBeUndefined()
  expect(highlightedLines('if ', 'constructor', colored)).toBeUndefined()
  expect(highlightedLines('if '.repeat(10_000), 'ts', colored)).toBeUndefined()
})

test('an answer shows highlighted code, whose control sequences are not written', () => {
  const answer = cleanText('Try:\n\n```ts\nconst a = "\x1b[2Jb" // \x1b]0;title\x07\n```\n')
  const draw = (theme: typeof colored) => markdownLines(answer, { width: 60, theme, budget: COMPLETE_BUDGET })
  const lines = draw(colored).join('\n')
  expect(lines).toContain(keyword('const'))
  expect(lines).not.toMatch(/\x1b(?!\[\d+m)|\x07/) // oxlint-disable-line no-control-regex -- what must not be there
  expect(withoutColors(lines)).toBe(draw(plain).join('\n'))
})
