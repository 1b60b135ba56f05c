/** Forms of MCP servers, which a running call of their tools holds. */
import { z } from 'zod'
import { AnswerQuestion, DECLINE } from '../values/question.ts'
import type { KindOfRequest } from './kind.ts'
import { logEntry, PERSON } from './kind.ts'
import { answersSaid, QuestionPayload, QuestionsAnswered, questionsIn } from './question.ts'

const Elicitation = z.object({
  server: z.string().describe('The name of the MCP server that asks.'),
  ...QuestionPayload.shape,
})

export const elicitationKind = {
  name: 'Elicitation',
  about: 'an MCP server asks the user while a call runs',
  scope: 'write',
  waits: 'call',
  who: PERSON,
  form: {
    is: 'questions',
    title: { english: 'Question of an MCP server', german: 'Frage eines MCP-Servers' },
    noun: 'A form of an MCP server',
    unanswered: DECLINE,
  },
  payload: Elicitation,
  answer: AnswerQuestion.shape,
  example: { answers: { Confirm: 'Yes' } },
  ...logEntry({
    opened: Elicitation,
    answered: QuestionsAnswered,
    asks: (payload) => `asks the user for the MCP server ${payload.server}: ${questionsIn(payload)}`,
    says: answersSaid,
  }),
} as const satisfies KindOfRequest
