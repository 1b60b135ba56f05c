/** Routes for questions of the agent: list those that wait, answer. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { AnswerQuestion, PendingQuestions, QuestionAnswered } from '../../contract/events/questions.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { describeRoute } from '../describe-route.ts'
import { ById, CONVERSATION } from './conversation-params.ts'

export const questionRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.get(
    '/conversations/:id/questions',
    {
      schema: {
        ...describe('listQuestions', 'List the questions that wait for the user', CONVERSATION),
        params: ById,
        response: { 200: PendingQuestions },
      },
    },
    async (request) => (await manager.open(request.params.id)).questions.pending(),
  )

  app.post(
    '/conversations/:id/questions/:question_id',
    {
      schema: {
        ...describe('answerQuestion', 'Answer a question of the agent; the first answer counts', [
          ...CONVERSATION,
          'conversation_from_newer_version',
          'storage_full',
          'question_not_found',
          'already_answered',
          'question_closed',
        ]),
        params: z.strictObject({ id: ConversationId, question_id: z.uuid().toLowerCase() }),
        body: AnswerQuestion,
        response: { 200: QuestionAnswered },
      },
    },
    async (request) => {
      const { questions } = await manager.open(request.params.id)
      return await questions.answer(request.params.question_id, request.body.answers)
    },
  )
}
