/** A conversation as Markdown. */
import { marked } from 'marked'
import { expect, test } from 'vitest'
import { exportOf } from '../../src/ui/state/export.ts'
import { createRandom } from '../support/random.ts'

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

/**
 * What a viewer makes of a document with this answer: the names of all elements that Markdown alone does not make, and the
 * targets of links that lead neither to a page nor to mail.
 */
async function elementsIn(text: string): Promise<string[]> {
  const title = '<svg onload=alert(1)> ![a](http://x.test/y)'
  const document = await exported(
    handle([
      { type: 'AssistantMessage', text },
      { type: 'ToolUse', name: '<img src=x>', input: { command: 'echo' } },
      { type: 'ErrorEvent', message: '<script>alert(1)</script>' },
    ]),
    title,
  )
  const html = await marked.parse(document)
  expect(html).toContain('<h2>Agent</h2>')
  const drawn = [...html.matchAll(/class="language-([^"]*)"/g)].filter(([, language]) => language === 'mermaid')
  const targets = [...html.matchAll(/href="([^"]*)"/g)].filter(
    ([, target = '']) => !/^(?:https?:\/\/|mailto:)/i.test(target),
  )
  const elements = [...html.matchAll(/<([a-z!?][^\s>/]*)/gi)].filter(([, name = '']) => !OF_MARKDOWN.test(name))
  return [...elements, ...drawn, ...targets].map(([, name = '']) => name)
}

const OF_MARKDOWN = /^(?:h\d|p|blockquote|ul|ol|li|code|pre|em|strong|del|a|hr|br|table|thead|tbody|tr|th|td|input)$/

test('a viewer of the document loads no image and finds no HTML, and code is whole', async () => {
  const text = [
    'See `a < b`, `Array<string>` and <b>this</b>: ![pixel](http://x.test/?secret) <!-- -->',
    '```ts',
    'const a: Array<string> = [] // ![no](image)',
    '```',
    '```mermaid',
    'A@{ img: "http://x.test/y" }',
    '```',
  ]
  expect(await elementsIn(text.join('\n'))).toEqual([])
  const document = await exported(handle([{ type: 'AssistantMessage', text: text.join('\n') }]), 'code')
  expect(document).toContain('> See `a < b`, Array&lt;string> and &lt;b>this&lt;/b>: &#33;[pixel](')
  expect(document).toContain('> ```ts\n> const a: Array<string> = [] // ![no](image)\n> ```')
  expect(document).toContain('> ```\n> A@{ img')
  const others = [
    '- a\n\n   ```\n<img src=x>\n```\n<img src=x>',
    '```\nnever closed\n<img src=x>',
    '`one\n` <img src=x> `two`',
    '|a|b|\n|-|-|\n| ` | <img src=x> ` |',
    '[^1]: \n```\n\n<img src=x>',
    '[b]: http://x.test "\n```\n\n"\n<img src=x>\n```',
    '[[|![a](http://x.test/y)](http://x.test)',
    '[a\nb]: http://x.test/y\n\n![c][a\nb]',
    ...['  ```', '- ```', '> ~~~', '1. a\n\n   ~~~~ ', '   ~~~\n\n```', '`` ``` ``\n\n```\u00a0'].map(
      (fence) => `${fence}mermaid\nA@{ img: "http://x.test/y" }`,
    ),
    '`` ```mermaid <b ``\nA@{ img: "http://x.test/y" }',
    '  ```\n```\n~~~mermaid ```\nA@{ img: "http://x.test/y" }',
  ]
  for (const other of others) expect([other, await elementsIn(other)]).toEqual([other, []])
})

test('links of the document lead to pages and mail only, in whatever way their target is written', async () => {
  const hostile = [
    'javascript:alert(1)',
    'data:text/html,<b>',
    'vbscript:x',
    'file:///etc/passwd',
    '//x.test/share',
    '#x',
    'a.md',
  ]
  const written = hostile.flatMap((target) => [
    `[a](${target})`,
    `[a](<${target}>)`,
    `[a](\n${target})`,
    `[a]( ${target} "title")`,
    `[a](${target.replace(':', '&colon;')})`,
    `[a](${target.replace(/^./, (first) => `&#${first.charCodeAt(0)};`)})`,
    `[a](${target.toUpperCase()})`,
    `![a](${target})`,
    `[![a](http://x.test)](${target})`,
    `[a][b]\n\n[b]: ${target}`,
    `[a]\n\n[a]:\n${target}`,
    `<${target}>`,
    `[a]\`(${target}) <b\``,
    `| [a](${target}) |\n|-|`,
  ])
  for (const text of written) expect([text, await elementsIn(text)]).toEqual([text, []])
  const document = await exported(
    handle([{ type: 'AssistantMessage', text: '[page](https://x.test/a) and [mail](mailto:a@x.test), `a[0](1)`' }]),
    'links',
  )
  expect(document).toContain('> [page](https://x.test/a) and [mail](mailto:a@x.test), a[0]&#40;1)')
})

test('a viewer finds no HTML, no drawing and no other link in what random marks of Markdown make of it', async () => {
  const marks = [
    '`',
    '``',
    '```',
    '````',
    '~~~',
    '```js',
    '```mermaid',
    '~~~mermaid',
    '<img src=x>',
    '![a](http://x.test)',
    '![a][b]',
    '[a](javascript:x)',
    '(data:x)',
    ']',
    '<!-- ',
    '-->',
  ]
  const around = [
    '\n',
    '\n',
    '\n\n',
    '\r',
    '- ',
    '1. ',
    '> ',
    '   ',
    '    ',
    '\t',
    '\\',
    '|',
    '|-|-|\n',
    '# ',
    '===\n',
    '*',
  ]
  const others = [
    '[b]: http://x.test "',
    '[^1]: ',
    '"',
    '<pre>',
    '</pre>',
    '<details>',
    '[a](',
    '<b',
    '>',
    ')',
    '!',
    '[',
    'a',
  ]
  const all = [...marks, ...around, ...others]
  const random = createRandom(8)
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: 2 + random.below(22) }, () => random.pick(all)).join('')
    expect([text, await elementsIn(text)]).toEqual([text, []])
  }
})
