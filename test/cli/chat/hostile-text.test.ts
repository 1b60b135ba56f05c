/** Texts that are made to harm: to freeze the chat, to control the terminal, or to hide what is approved. */
import * as fc from 'fast-check'
import { visibleWidth } from '@earendil-works/pi-tui'
import { describe, expect, test } from 'vitest'
import { approvalLines } from '../../../src/cli/chat/input/approval-text.ts'
import type { ChatContext } from '../../../src/cli/chat/commands/command.ts'
import { copyAnswer } from '../../../src/cli/chat/commands/prompt-text.ts'
import { linesOfItem } from '../../../src/cli/chat/render/item-lines.ts'
import { exactLines } from '../../../src/cli/chat/render/lines.ts'
import { safeLines } from '../../../src/cli/chat/render/safe-lines.ts'
import { StreamedMarkdown } from '../../../src/cli/chat/render/streamed-markdown.ts'
import { createTheme } from '../../../src/cli/chat/render/theme.ts'
import { Transcript } from '../../../src/cli/chat/render/transcript.ts'
import type { Item, UserItem } from '../../../src/cli/chat/state/chat-state.ts'
import { revealText } from '../../../src/cli/chat/state/clean-text.ts'

const theme = createTheme(true)
const plain = createTheme(false)
const filled = (text: string, length = 100_000) => text.repeat(Math.ceil(length / text.length)).slice(0, length)

const answer = (text: string, isComplete = true): Item => ({
  kind: 'answer',
  messageId: 'm',
  parts: [text],
  isReasoning: false,
  isComplete,
})

test('a copied answer is what was shown: it ends no paste, and its tabs stay', () => {
  const copied: string[] = []
  const items = [answer('all:\n\tcc a.c\x1b[201~\x1b]52;c;eA==\x07\r\n\u202eevil\u200b\n')]
  const context = { session: { state: { items }, say: () => {} }, copy: (text: string) => copied.push(text) }
  copyAnswer(context as unknown as ChatContext)
  expect(copied).toEqual(['all:\n\tcc a.c\n<U+202E>evil\n'])
})

const draw = (item: Item, streamed = new StreamedMarkdown()) =>
  linesOfItem(item, { width: 80, theme, isExpanded: true, streamed })

describe('answers', () => {
  // The first of them took 150 s, and the nested ones overflowed the stack.
  test.each([
    ['emphasis', filled('*a ')],
    ['links', filled('[a](')],
    ['quotes', `${filled('>')}x`],
    ['lists in lists', `${filled('- ', 4000)}x\n${filled('- > 1. ', 4000)}`],
    ['indented lists', Array.from({ length: 400 }, (_, at) => `${' '.repeat(2 * at)}- item`).join('\n')],
    ['a fence that is none', `<div>\n\`\`\`\n</div>\n\n${filled('*a ')}`],
    ['a table without an end', `| a | b |\n|---|---|\n${filled('| 1 | *two* |\n')}`],
    ['a line of 10 MB', filled('x', 10_000_000)],
    ['100,000 lines', filled('some words\n', 1_100_000)],
    ['marks without width', `a${filled('\u0301')}`],
  ])('%s of any length are drawn soon, while they grow and when they are complete', (_, text) => {
    const streamed = new StreamedMarkdown()
    for (let end = 1; end <= 20; end++) draw(answer(text.slice(0, (text.length * end) / 20), false), streamed)
    const lines = draw(answer(text))
    expect(lines.length).toBeLessThan(2010)
    expect(Math.max(...lines.map((line) => visibleWidth(line)))).toBeLessThanOrEqual(80)
  })

  test('usual Markdown keeps its form next to a paragraph that would take too long', () => {
    const lines = draw(answer(`# Title\n\n${filled('*a ', 9000)}\n\n- **one**`))
    expect(lines.join('\n')).toContain('Title\x1b')
    expect(lines.at(-1)).not.toContain('**')
  })
})

const HOSTILE = ['\x1b', '[', ']', '52;c;', 'm', '8m', '31m', '\x07', '\x9b', '\u202e', '\r', '\n', '\u061c', 'a', '🎉']
const hostile = fc.string({ unit: fc.constantFrom(...HOSTILE), maxLength: 40 })

test('a text that nobody has cleaned cannot control the terminal either', () => {
  // oxlint-disable-next-line no-control-regex -- what the chat itself writes
  const ours = /\x1b\[(?:[0123479;]|2[2-57-9]|3[1-469])*m|\x1b_pi:c\x07/g
  fc.assert(
    fc.property(hostile, hostile, (before, after) => {
      const [line = ''] = safeLines([`${before}${theme.bold(theme.red(after))}`])
      // oxlint-disable-next-line no-control-regex -- what must not be there
      return !/[\0-\x1f\x7f-\x9f\u061c\u202e]/.test(line.replaceAll(ours, ''))
    }),
  )
  expect(safeLines([theme.bold('bold')])).toEqual([theme.bold('bold')])
})

describe('approvals', () => {
  const text = fc.string({
    unit: fc.constantFrom(
      'rm',
      ' ',
      '  ',
      '\n',
      'x',
      '世界',
      '🎉',
      '\u200b',
      '\u3164',
      '\ufe0f',
      '\u2003',
      '\u034f',
      '-',
    ),
    maxLength: 60,
  })

  test('show every character, and a line that is broken looks different from a new line', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 12, max: 40 }), (command, width) => {
        const lines = exactLines(revealText(command), width, '  $ ', '    ')
        const shown = lines
          .map((line, at) => (at === 0 || line.startsWith('  … ') ? '' : '\n') + line.slice(4))
          .join('')
        return shown === revealText(command) && lines.every((line) => visibleWidth(line) <= width)
      }),
    )
    // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- what cannot be seen
    const unseen = /[\u200b\u3164\ufe0f\u2003\u034f]/
    fc.assert(fc.property(text, (command) => !unseen.test(revealText(command))))
    expect(revealText('rm \\ \n/')).toBe('rm \\<U+0020>\n/')
  })

  const linesOf = (input: Record<string, unknown>, width: number) =>
    approvalLines({ tool_use_id: 'c', name: 'Bash', input, input_hash: '', reason: '' }, { width, theme: plain })

  test('show the whole name of a field, and a line break in it as a code', () => {
    const name = `${'x'.repeat(90)} danger`
    const lines = linesOf({ [name]: true, 'a\n  path': 'b' }, 40)
    expect(
      lines
        .slice(0, -1)
        .map((line, at) => line.slice(at === 0 ? 2 : 4))
        .join(''),
    ).toBe(`${name}: true`)
    expect(lines.at(-1)).toBe('  a<U+000A>  path: b')
  })

  test('fit into terminals that draw each part of an emoji as a separate character', () => {
    for (const emoji of ['a\u{1f3fd}', '\u{1f44d}\u{1f3fd}', '\u{1f1e9}\u{1f1ea}', `a${'\u{1f3fd}'.repeat(100)}`]) {
      const command = `echo ${emoji.repeat(30)}; rm -rf .`
      const lines = linesOf({ command }, 60)
      expect(lines.map((line) => line.slice(4)).join('')).toBe(command)
      const columns = lines.map((line) => Array.from(line).reduce((sum, point) => sum + visibleWidth(point), 0))
      expect(Math.max(...columns)).toBeLessThanOrEqual(60)
    }
  })

  test('of megabytes are drawn soon', () => {
    const input = { command: filled('echo hidden ', 5_000_000) }
    const lines = approvalLines(
      { tool_use_id: 'c', name: 'Bash', input, input_hash: '', reason: '' },
      { width: 80, theme: plain },
    )
    expect(lines.map((line) => line.slice(4)).join('')).toBe(input.command)
  })
})

describe('the transcript', () => {
  const said = (at: number, text = `message ${at}`): UserItem => ({ kind: 'user', text, images: 0 })
  const items = Array.from({ length: 100 }, (_, at) => said(at))

  function open(topLine = 150) {
    const later: number[] = []
    const transcript = new Transcript({ theme: plain, topLine: () => topLine, redrawAfter: (ms) => later.push(ms) })
    const show = (shown: readonly Item[]) => {
      transcript.show(shown)
      return transcript.render(80)
    }
    return { show, later, transcript }
  }

  test('changes what the terminal no longer shows at most once a second, and what it shows at once', () => {
    const { show, later } = open()
    show(items)
    show(items.with(3, said(3, 'first change')))
    const lines = show(items.with(3, said(3, 'second change')).with(99, said(99, 'new end')))
    expect(lines).toContain('> first change')
    expect(lines).toContain('> new end')
    expect(later).toHaveLength(1)
    expect(later[0]).toBeGreaterThan(0)
  })

  test('has a bounded number of lines, the last ones', () => {
    const { show } = open()
    const many = Array.from({ length: 500 }, (_, at) => said(at, `${at}\n`.repeat(50)))
    const lines = show(many)
    expect(lines.length).toBeLessThan(5000)
    expect(lines[0]).toBe('Earlier parts of this conversation are not shown.')
    expect(lines.at(-1)).toBe('  ')
    expect(show([...many, said(500)]).length).toBe(lines.length + 2)
  })

  test('an item that cannot be drawn does not end the chat', () => {
    const { show } = open()
    const broken = {
      kind: 'notice',
      tone: 'info',
      get text(): string {
        throw new Error('a bug')
      },
    } as const
    expect(show([said(1), broken, said(2)])).toContain('> message 2')
  })
})
