/**
 * A text of any length from a client, a model, a tool or a file is no error and takes no minutes. Each text makes a usual
 * expression for the same overflow the stack of V8 or try each division of the text. The time limit of a test is the
 * measure: the wrong way takes many minutes.
 */
import { expect, test } from 'vitest'
import { oneLine, plainText } from '../../src/telemetry/plain-text.ts'
import { readCommand } from '../../src/cli/chat/commands/slash-commands.ts'
import { withImages } from '../../src/cli/chat/input/images.ts'
import { safeLines } from '../../src/cli/chat/render/safe-lines.ts'
import { COMPLETE_BUDGET, markdownLines } from '../../src/cli/chat/render/markdown-lines.ts'
import { createTheme } from '../../src/cli/chat/render/theme.ts'
import { StreamedMarkdown } from '../../src/cli/chat/render/streamed-markdown.ts'
import { cleanText, revealText } from '../../src/cli/chat/state/clean-text.ts'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { describeIssue } from '../../src/contract/problem.ts'
import { withSecrets } from '../../src/mcp/named-secrets.ts'
import { isToolOf, parseRule } from '../../src/policy/rules/rule.ts'
import { commandParts, parseCommandCall } from '../../src/state/command-text.ts'
import { findJsonFault } from '../../src/project/json-fault.ts'
import { patternsOf } from '../../src/security/redaction/secret-patterns.ts'
import { createGlob } from '../../src/tools/search/glob.ts'

/** Some more turns than the stack of V8 holds. */
const MANY = 18_000_000
/** The square of it is some minutes or hours of steps. */
const SIZE = 1_000_000

const spaces = ' '.repeat(SIZE)
const dots = `@${'.'.repeat(SIZE)}x`
const styles = `\u001b[${'32'.repeat(SIZE)}\u0007`
const titles = '\u001b]0;aaaa'.repeat(SIZE / 9)
const secretless = { secret: () => undefined, credential: () => undefined }
const markdown = (text: string) => markdownLines(text, { width: 80, theme: createTheme(true), budget: COMPLETE_BUDGET })
const glob = createGlob({} as never)
const unknownFields = (keys: string[]) =>
  describeIssue(
    { code: 'unrecognized_keys', path: [], message: '', keys },
    ['body'],
    Object.keys(CreateConversation.shape),
  )
const rule = parseRule(`mcp__${'a'.repeat(SIZE)}`)

const WORK: readonly (readonly [what: string, work: () => unknown])[] = [
  ['a command: one word as an argument', () => commandParts('$1', 'a'.repeat(MANY))],
  ['a command: many words', () => commandParts('$9', 'a "b" '.repeat(SIZE))],
  ['a command: quotes without an end', () => commandParts('$1', `'${'"a'.repeat(SIZE)}`)],
  ['a command: a path that is filled', () => commandParts('@$1', dots)],
  ['a command: spaces', () => parseCommandCall(`/a${spaces}b${spaces}`)],
  ['a command of the chat: spaces', () => readCommand(`/a${spaces}b${spaces}`, [])],
  ['a message of the chat: marks', () => withImages(`${dots} ${'a'.repeat(MANY)}`, '/')],
  ['JSON of a project: a string', () => findJsonFault(JSON.stringify('a'.repeat(MANY)))],
  ['a rule: the name of a server', () => typeof rule === 'object' && rule.kind === 'tool' && isToolOf(rule, 'a')],
  [
    'a setting of an MCP server: open names',
    () => withSecrets('a', { transport: 'stdio', args: [`}${'${A:-'.repeat(SIZE)}`] }, secretless),
  ],
  ['a request: a long name of a field', () => unknownFields(['a'.repeat(SIZE)])],
  ['a request: many names of fields', () => unknownFields(Array.from({ length: SIZE }, () => 'permission_rule'))],
  ['a secret: marks on a letter', () => patternsOf('A', `a${'\u0301\u0323'.repeat(SIZE / 10)}`, false)],
  ['a line of the chat: styles', () => safeLines([styles])],
  ['a text in the chat: marks on a letter', () => cleanText(`a${'\u0301'.repeat(MANY)}`)],
  ['a text in the chat: returns', () => cleanText(`${'\r'.repeat(SIZE)}x`)],
  ['a text in the chat: sequences without an end', () => cleanText(titles)],
  ['a text in an approval: spaces', () => revealText(`${spaces}x`)],
  ['a text on the terminal: sequences without an end', () => plainText(titles)],
  ['a sentence on the terminal: spaces', () => oneLine(`${spaces}x`)],
  ['an answer: escapes', () => markdown('\\n'.repeat(SIZE / 8))],
  ['an answer: addresses', () => markdown('a@b.'.repeat(SIZE / 4))],
  ['a search: a path of many directories above', () => glob.access?.({ pattern: 'a/*', path: '../'.repeat(SIZE / 3) })],
  [
    'an answer that grows: fences',
    () => new StreamedMarkdown().lines('a', `\`\`\`${'\n\na'.repeat(SIZE)}`, 80, () => []),
  ],
]

test.each(WORK)('%s', async (_what, work) => {
  // The value itself may have megabytes, which a failure would print.
  await expect(Promise.resolve(work()).then(() => 'done')).resolves.toBe('done')
})

test('a long text is the same as a short one', () => {
  expect(commandParts('$1,$2', `"${'a '.repeat(5000)}"b"c"${'d'.repeat(9000)} 'e'`)[0]).toEqual({
    kind: 'text',
    text: `${'a '.repeat(5000)}bc${'d'.repeat(9000)},e`,
  })
  expect(cleanText(`a${'\u0301'.repeat(9)}b${'\u0301'.repeat(6)}`)).toBe(`a${'\u0301'.repeat(6)}b${'\u0301'.repeat(6)}`)
  expect(plainText('\u001b[1ma\u001b[0m\u001b]0;title\u0007b\u001b(Bc\u001b=d\u001b8e\u001b]0;f')).toBe('abcde]0;f')
  expect(oneLine('a \n\t\n b  c')).toBe('a b  c')
  expect(safeLines(['\u001b[1;33;34ma\u001b[m\u001b[;0mb\u001b[5mc'])).toEqual([
    '\u001b[1;33;34ma\u001b[m\u001b[;0mb[5mc',
  ])
})
