/** Routes that describe and delete a file, a link or a directory. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { DeleteFile, FileInfo } from '../../../contract/files.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { closeSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { contentTypeOf } from '../../files/file-headers.ts'
import { pathOf } from '../../files/file-path.ts'
import { publishingOf } from '../../files/preconditions.ts'
import { ByPath, CHANGE, PATH } from './path-params.ts'

export const fileRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.delete(
    '/conversations/:id/files/*',
    {
      schema: {
        ...describe('deleteFile', 'Delete a file, a link, or a directory', [
          ...CHANGE,
          'file_not_found',
          'directory_not_empty',
          'precondition_failed',
        ]),
        params: ByPath,
        querystring: DeleteFile,
        headers: z.object({ 'if-match': z.string().optional() }),
        response: { 204: z.undefined().describe('It was deleted.') },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const { precondition } = publishingOf({ 'if-match': request.headers['if-match'] })
      await files.changes.remove(pathOf(request), { ...request.query, precondition }, closeSignal(reply))
      return reply.code(204).send()
    },
  )

  app.get(
    '/conversations/:id/file-info/*',
    {
      schema: {
        ...describe('getFileInfo', 'Get information about a file, a directory or a link', [...PATH, 'file_not_found']),
        params: ByPath,
        response: { 200: FileInfo },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const info = await files.views.info(pathOf(request), closeSignal(reply))
      return { ...info, ...(info.type === 'file' && { content_type: contentTypeOf(info.name) }) }
    },
  )
}
