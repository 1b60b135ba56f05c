/** Forms of servers as questions to the user, and the answers as the content of the form. */
import { describe, expect, test } from 'vitest'
import type { AskedQuestion } from '../../src/contract/values/question.ts'
import { answerElicitation } from '../../src/mcp/calls/elicitation.ts'
import { tidy } from '../../src/mcp/tools/shown-text.ts'

const never = new AbortController().signal

/** Answers each question by its field, or gives up. */
async function fill(requestedSchema: unknown, answers: Record<string, string[]> | undefined) {
  const asked: AskedQuestion[] = []
  const elicit = async ({ questions }: { readonly questions: readonly AskedQuestion[] }) => {
    asked.push(...questions)
    if (!answers) return undefined
    const given = questions.map(({ question }) => [question, answers[/\[(\w+)\]$/.exec(question)?.[1] ?? '']] as const)
    return Object.fromEntries(given.flatMap(([question, texts]) => (texts ? [[question, texts]] : [])))
  }
  const answer = await answerElicitation(
    { name: 's', show: tidy },
    { message: 'Please.', requestedSchema },
    { elicit },
    never,
  )
  return { answer, asked }
}

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name' },
    age: { type: 'integer' },
    kind: {
      type: 'string',
      oneOf: [
        { const: 'a', title: 'Kind A' },
        { const: 'b', title: 'Kind B' },
      ],
    },
    tags: { type: 'array', items: { type: 'string', enum: ['x', 'y'] } },
    sure: { type: 'boolean' },
  },
  required: ['name'],
}

test('each type of field has its form, in several questions when there are many', async () => {
  const { answer, asked } = await fill(schema, {
    name: ['Ann'],
    age: ['42'],
    kind: ['Kind B'],
    tags: ['x', 'y'],
    sure: ['No'],
  })
  expect(answer).toEqual({
    action: 'accept',
    content: { name: 'Ann', age: 42, kind: 'b', tags: ['x', 'y'], sure: false },
  })
  expect(asked.map(({ options }) => options.map(({ label }) => label).join())).toEqual([
    'Decline',
    'Decline',
    'Kind A,Kind B,Decline',
    'x,y,Decline',
    'Yes,No,Decline',
  ])
  expect(asked[0]!.question).toBe('The MCP server s asks: Please.\nYour name [name]')
})

test('a value with the name of the refusal cannot be chosen', async () => {
  const properties = { how: { type: 'array', items: { type: 'string', enum: ['x', 'Decline'] } } }
  const { answer, asked } = await fill({ type: 'object', properties }, { how: ['x'] })
  expect(asked[0]!.options.map(({ label }) => label)).toEqual(['x', 'Decline'])
  expect(answer).toEqual({ action: 'accept', content: { how: ['x'] } })
})

describe('no content is made up', () => {
  test.each([
    ['the user declines', schema, { name: ['Decline'] }, 'decline'],
    ['the user does not answer', schema, undefined, 'cancel'],
    ['a required field is left out', schema, { age: ['42'] }, 'cancel'],
    ['the form has no fields and is declined', {}, { '': ['no'] }, 'decline'],
    [
      'the form has too many fields',
      { properties: Object.fromEntries(Array.from({ length: 13 }, (_, at) => [`f${at}`, {}])) },
      {},
      'decline',
    ],
    ['two fields look the same', { properties: { a: {}, 'a\u200b': {} } }, {}, 'decline'],
  ] as const)('when %s', async (_, form, answers, action) => {
    expect((await fill(form, answers as Record<string, string[]> | undefined)).answer).toEqual({ action })
  })

  test('of an answer that is not a number', async () => {
    const form = { properties: { count: { type: 'number' } } }
    expect((await fill(form, { count: ['many'] })).answer).toEqual({ action: 'accept', content: {} })
  })
})
