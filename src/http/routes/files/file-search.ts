/** Routes that search and count the files of a workdir. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { CountFiles, FileCount, FileMatches, SearchFiles } from '../../../contract/files.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { parseJailPath } from '../../../files/jail/jail-path.ts'
import { closeSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { ById } from '../../openapi/conversation-params.ts'
import { PATH } from './path-params.ts'

export const fileSearchRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.get(
    '/conversations/:id/file-search',
    {
      schema: {
        ...describe('searchFiles', 'Find files by name, and lines by content', [...PATH, 'file_not_found']),
        params: ById,
        querystring: SearchFiles,
        response: { 200: FileMatches },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      return await files.views.search(parseJailPath(request.query.path), request.query, closeSignal(reply))
    },
  )

  app.get(
    '/conversations/:id/file-count',
    {
      schema: {
        ...describe('countFiles', 'Count files and directories', [...PATH, 'file_not_found']),
        params: ById,
        querystring: CountFiles,
        response: { 200: FileCount },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      return await files.views.count(parseJailPath(request.query.path), closeSignal(reply))
    },
  )
}
