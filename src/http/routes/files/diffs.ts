/** Routes of what has changed in a workdir, by its snapshots. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { DiffPage, GetDiff } from '../../../contract/diff.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { viewConversationDiff } from '../../../conversations/view-diff.ts'
import { ById, CONVERSATION } from '../../openapi/conversation-params.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { closeSignal } from '../../request/close-signal.ts'

export const diffRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.get(
    '/conversations/:id/diff',
    {
      schema: {
        ...describe('getDiff', 'Get what has changed in the files', [
          ...CONVERSATION,
          'cursor_ahead',
          'snapshot_not_found',
          'file_not_found',
          'git_failed',
          'workdir_missing',
          'workdir_too_large',
        ]),
        params: ById,
        querystring: GetDiff,
        response: { 200: DiffPage },
      },
    },
    async (request, reply) => {
      const conversation = await manager.open(request.params.id)
      return await viewConversationDiff(conversation, request.query, closeSignal(reply))
    },
  )

  app.delete(
    '/conversations/:id/snapshots',
    {
      schema: {
        ...describe('deleteSnapshots', 'Delete all snapshots of the files', [...CONVERSATION]),
        params: ById,
        response: { 204: z.undefined() },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      await files.snapshots.purge()
      return reply.code(204).send()
    },
  )
}
