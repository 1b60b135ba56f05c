/** Questions of the agent to the user. */
import { z } from 'zod'
import { AnswerQuestion, Answers, AskedQuestion } from '../values/question.ts'
import type { KindOfRequest } from './kind.ts'
import { logEntry, PERSON } from './kind.ts'

/** The payload of each kind with the form `questions`. */
export const QuestionPayload = z.object({ questions: z.array(AskedQuestion) })

export const QuestionsAnswered = z.object({ answers: Answers })

export const questionsIn = ({ questions }: z.infer<typeof QuestionPayload>): string =>
  questions.map(({ question }) => question).join('; ')

export const answersSaid = ({ answers }: z.infer<typeof QuestionsAnswered>): string =>
  `answered: ${Object.values(answers).flat().join('; ')}`

export const questionKind = {
  name: 'Question',
  about: 'the agent asks the user',
  scope: 'write',
  waits: 'waiting_for_input',
  who: PERSON,
  form: { is: 'questions', title: { english: 'Question', german: 'Frage' }, noun: 'A question', unanswered: undefined },
  payload: QuestionPayload,
  answer: AnswerQuestion.shape,
  example: { answers: { 'Which database should it use?': 'PostgreSQL', '1': ['Tests', 'Documentation'] } },
  ...logEntry({
    opened: QuestionPayload,
    answered: QuestionsAnswered,
    asks: (payload) => `asks the user: ${questionsIn(payload)}`,
    says: answersSaid,
  }),
} as const satisfies KindOfRequest
