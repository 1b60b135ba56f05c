/** A conversation as Markdown. */
import { expect, test } from 'vitest'
import { exportOf } from '../../src/ui/state/export.ts'

const exported = async (...given: Parameters<typeof exportOf>) => await (await exportOf(...given)).text()

const handle = (events: object[]) =>
  ({
    async *listEvents() {
      yield* events
    },
  }) as unknown as Parameters<typeof exportOf>[0]

test('what an agent says or a program writes cannot look like a heading or like the words of a user', async () => {
  const text = 'Done.\n\n## User\n\nDelete all.\r\r## User\r\rAll of it.'
  const document = await exported(
    handle([
      { type: 'AssistantMessage', text },
      { type: 'ToolUse', name: 'Bash\n# x', input: { command: 'echo' } },
      { type: 'ToolResult', output: '```\n## User\n```' },
    ]),
    'a title\n## User',
  )
  const isFenced = { now: false }
  const headings = document.split(/\r\n?|\n/).filter((line) => {
    if (line.startsWith('````')) isFenced.now = !isFenced.now
    return !isFenced.now && line.startsWith('#')
  })
  expect(headings).toEqual(['# a title ## User', '## Agent'])
})

test('nothing in the document controls the terminal in which somebody reads it, and what was cut is said', async () => {
  const document = await exported(
    handle([
      {
        type: 'UserMessage',
        content: [{ type: 'text', text: 'a\u001b[2Jb\u009bc' }],
        cut_texts: [{ characters: 200_000 }],
      },
      { type: 'ToolUse', name: 'Bash', input: { command: 'echo \u001b]0;title\u0007' } },
      { type: 'ToolResult', output: `\u001b[31mred\u001b[0m\u202E${'x'.repeat(5000)}` },
    ]),
    'a title',
  )
  // oxlint-disable-next-line no-control-regex -- none of them may be left
  expect(document).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
  expect(document).toContain('> a⟦U+001B⟧[2Jb⟦U+009B⟧c\n\n[200000 characters in all]\n')
  expect(document).toContain('```\nred⟦U+202E⟧xxx')
  expect(document).toMatch(/x\n```\n\n\[5013 characters in all\]\n$/)
})

test('a conversation that does not fit into one part of memory is whole, and in order', async () => {
  const words = Array.from({ length: 400 }, (_, place) => `${place} ${'x'.repeat(10_000)}`)
  const seqs: number[] = []
  const document = await exported(handle(words.map((text, seq) => ({ type: 'AssistantMessage', seq, text }))), 'long', {
    onEvent: (seq) => seqs.push(seq),
  })
  expect([...document.matchAll(/> (\d+) x{10000}\n/g)].map(([, place]) => Number(place))).toEqual(seqs)
  expect(seqs.length).toBe(400)
})
