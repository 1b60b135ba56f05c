/** What an editor shows of hidden characters: a person decides by what is seen. And the names of its MCP servers. */
import { expect, test } from 'vitest'
import { formOfCall, wholeCall } from '../../../src/protocols/acp/call-form.ts'
import { mcpOf } from '../../../src/protocols/acp/mcp-input.ts'
import { answersIn, formOf, textOfQuestions } from '../../../src/protocols/acp/question-form.ts'

const HIDDEN = 'a\u{202e}b\u{200b}c\u{1b}[8md'
const SHOWN = 'a⟦U+202E⟧b⟦U+200B⟧c⟦U+001B⟧[8md'

test.each([
  ['Bash', { command: HIDDEN }],
  ['Write', { file_path: `/work/${HIDDEN}`, content: HIDDEN }],
  ['Edit', { file_path: '/work/a', old_string: HIDDEN, new_string: HIDDEN }],
  ['MultiEdit', { file_path: '/work/a', edits: [{ old_string: HIDDEN, new_string: HIDDEN }] }],
  ['FileEditor', { command: 'create', path: '/work/a', file_text: HIDDEN }],
  ['apply_patch', { input: `*** Begin Patch\n${HIDDEN}` }],
  ['mcp__server__tool', { anything: HIDDEN }],
])('a call of %s shows them in its title, its input and its changes', (name, input) => {
  const { title, rawInput, content } = formOfCall(name, input, '/work', HIDDEN)
  const whole = wholeCall(name, input, '/work', HIDDEN)
  const texts = JSON.stringify([title, rawInput, content, whole])
  expect(texts).toContain(SHOWN)
  expect(texts).not.toMatch(/[\u{202e}\u{200b}]|\\u001b/u)
})

test('a form shows them, and its answers are the labels as they are', () => {
  const options = [{ label: HIDDEN, description: HIDDEN }]
  const questions = [
    { question: HIDDEN, header: '', options, multi_select: false },
    { question: HIDDEN, header: HIDDEN, options, multi_select: true },
    { question: HIDDEN, header: '', options: [], multi_select: false },
  ]
  const { properties } = formOf(questions)
  const [first, second] = [Object(properties['question_0']), Object(properties['question_1'])]
  expect(first).toMatchObject({ title: SHOWN, description: SHOWN, oneOf: [{ const: HIDDEN, title: SHOWN }] })
  expect(second).toMatchObject({
    title: SHOWN,
    items: { anyOf: [{ const: HIDDEN, title: SHOWN, description: SHOWN }] },
  })
  expect(properties['question_2']).toMatchObject({ title: SHOWN, description: SHOWN })
  expect(textOfQuestions(questions)).not.toContain(HIDDEN)
  expect(answersIn(questions, { question_0: HIDDEN })).toEqual({ 0: [HIDDEN] })
})

test('MCP servers whose names would be the same keep all', () => {
  const server = (name: string) => ({ name, command: `run ${name}`, args: [], env: [] })
  const long = 'x'.repeat(40)
  const names = ['my server', 'my_server', 'my.server', long, `${long}y`, '???', '!!!']
  const { mcpServers = {} } = mcpOf(names.map((name) => server(name))) ?? {}
  expect(Object.keys(mcpServers)).toEqual([
    'my_server',
    'my_server-2',
    'my_server-3',
    'x'.repeat(32),
    `${'x'.repeat(30)}-2`,
    'server',
    'server-2',
  ])
  expect(Object.values(mcpServers).map((one) => Object(one).command)).toEqual(names.map((name) => `run ${name}`))
})
