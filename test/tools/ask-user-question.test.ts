import { expect, test } from 'vitest'
import { ToolCalls } from '../../src/agent/tool-calls.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { createAskUserQuestion } from '../../src/tools/ask-user-question.ts'
import { contextIn } from './tool-fixture.ts'

const tool = createAskUserQuestion()
const toolCalls = new ToolCalls({
  tools: [tool],
  context: () => contextIn('/work'),
  redactor: createRedactor(),
  emit: async () => {},
  adviceFor: () => undefined,
  onOutput: () => {},
  onCrash: () => {},
})

const option = (label: unknown, more: object = {}) => ({ label, description: '', ...more })
const question = (more: object = {}) => ({
  question: 'Which?',
  header: 'Which',
  options: [option('A'), option('B')],
  multiSelect: false,
  ...more,
})
const call = (input: unknown, name = 'AskUserQuestion') => ({ toolUseId: 'a', name, input, runId: undefined })
const asked = (input: unknown) => toolCalls.questionsIn([call(input)], new Map())
const faultOf = (...questions: unknown[]) => {
  const toolInput = toolCalls.readInput('AskUserQuestion', { questions })
  return 'fault' in toolInput ? toolInput.fault : undefined
}

test('asks what the model wrote; parameters in snake case and missing descriptions are accepted', () => {
  const { multiSelect: _, ...rest } = question({ multi_select: true, options: [{ label: 'A' }, option('B')] })
  expect(asked({ questions: [rest, question({ question: 'And?' })] })).toEqual([
    {
      toolUseId: 'a',
      questions: [
        { question: 'Which?', header: 'Which', options: [option('A'), option('B')], multi_select: true },
        { question: 'And?', header: 'Which', options: [option('A'), option('B')], multi_select: false },
      ],
    },
  ])
})

test('the schema that the model gets is that of Claude Code', () => {
  const [described] = toolCalls.descriptions
  const { properties } = described!.inputSchema as any // eslint-disable-line typescript/no-explicit-any
  expect(properties.questions).toMatchObject({ type: 'array', minItems: 1, maxItems: 4 })
  expect(Object.keys(properties.questions.items.properties)).toEqual(['question', 'header', 'options', 'multiSelect'])
  expect(properties.questions.items.properties.options).toMatchObject({ minItems: 2, maxItems: 4 })
})

test.each<[string, unknown[], RegExp]>([
  ['no question', [], /questions/],
  ['five questions', Array.from({ length: 5 }, (_, n) => question({ question: `${n}?` })), /questions/],
  ['an empty question', [question({ question: ' \n ' })], /questions\.0\.question: is empty/],
  ['a huge question', [question({ question: 'x'.repeat(1_000_000) })], /questions\.0\.question/],
  ['a question with an escape sequence', [question({ question: '\u001b[2JWhich?' })], /control characters/],
  ['a label with a NUL', [question({ options: [option('A\0'), option('B')] })], /control characters/],
  ['a question that is a prototype', [question({ question: '__proto__' })], /is not a question/],
  ['the same question twice', [question(), question()], /two questions have the same text/],
  ['the index of another question', [question({ question: '1' }), question()], /number of another one/],
  ['no options', [question({ options: [] })], /options/],
  ['one option', [question({ options: [option('A')] })], /options/],
  ['five options', [question({ options: ['A', 'B', 'C', 'D', 'E'].map((label) => option(label)) })], /options/],
  ['options with the same label', [question({ options: [option('A'), option('A')] })], /two options have the same/],
  ['an empty label', [question({ options: [option(''), option('B')] })], /label: is empty/],
  ['a label that is a number', [question({ options: [option(1), option('B')] })], /label/],
  ['text instead of questions', ['Which?'], /questions\.0/],
  ['null', [null], /questions\.0/],
])('%s: nobody is asked, and the model learns why', (_, questions, fault) => {
  expect(faultOf(...questions)).toMatch(fault)
  expect(asked({ questions })).toEqual([])
})

test.each(['constructor', 'toString', '0', 'hasOwnProperty'])('%s is a question like any other', (text) => {
  expect(faultOf(question({ question: text }))).toBeUndefined()
})

test('a denied call, and a call of another tool, asks nothing', () => {
  const calls = [call({ questions: [question()] }), call({ questions: [question()] }, 'Other')]
  expect(toolCalls.questionsIn(calls, new Map([['a', 'denied']]))).toEqual([])
})

test('where nobody can be asked, the model is asked to decide itself', async () => {
  const input = tool.input.parse({ questions: [question()] })
  expect(await tool.run(input, contextIn('/work'))).toMatchObject({ error: { type: 'failed' } })
})
