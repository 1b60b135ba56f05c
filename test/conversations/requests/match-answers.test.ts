import { expect, test } from 'vitest'
import type { AnswerQuestion } from '../../../src/contract/values/question.ts'
import { Problem } from '../../../src/contract/problem.ts'
import { matchAnswers } from '../../../src/conversations/requests/match-answers.ts'

const question = (text: string, multi_select = false) => ({ question: text, header: '', options: [], multi_select })
const ONE = question('Which?')
const MANY = question('What else?', true)

type Given = AnswerQuestion['answers']

test.each<[string, Given, object]>([
  ['by text', { 'Which?': 'A' }, { 'Which?': ['A'] }],
  ['by index', { '1': ['A', 'B'], '0': 'C' }, { 'Which?': ['C'], 'What else?': ['A', 'B'] }],
  ['one label in a list', { '0': ['A'] }, { 'Which?': ['A'] }],
  ['the same label again', { '1': ['A', 'A'] }, { 'What else?': ['A'] }],
  ['text for a choice of several', { '1': 'A, B' }, { 'What else?': ['A, B'] }],
])('an answer %s', (_, given, expected) => {
  expect(matchAnswers([ONE, MANY], given)).toEqual(expected)
})

test('the text of a question has precedence over an index', () => {
  expect(matchAnswers([ONE, question('0')], { '0': 'A' })).toEqual({ '0': ['A'] })
})

test.each(['constructor', 'toString', 'valueOf'])(
  '%s as a question is answered, and is a question of nobody else',
  (text) => {
    expect(matchAnswers([question(text)], { [text]: 'A' })).toEqual({ [text]: ['A'] })
    expect(matchAnswers([ONE], { [text]: 'A' })).toMatchObject({ code: 'invalid_request' })
  },
)

test.each<[string, Given, RegExp]>([
  ['another text', { 'Which?': 'A', 'my secret': 'B' }, /key 2 \(numbers not counted\) is neither/],
  ['another index', { '2': 'A' }, /key "2" is neither the text nor the index/],
  ['a negative index', { '-1': 'A' }, /key 1/],
  ['an index like a number', { '1e0': 'A' }, /key 1/],
  ['both keys of a question', { '0': 'A', 'Which?': 'A' }, /question 0 is answered twice/],
  ['two labels where one is asked for', { '0': ['A', 'B'] }, /question 0 takes one answer/],
])('%s is refused, and named without repeating it', (_, given, message) => {
  const refused = matchAnswers([ONE, MANY], given)
  expect(refused).toBeInstanceOf(Problem)
  expect((refused as Problem).message).toMatch(message)
  expect(JSON.stringify((refused as Problem).toBody())).not.toContain('secret')
})
