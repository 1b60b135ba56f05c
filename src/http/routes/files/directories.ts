/** Routes that list, download and create directories of a workdir. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { FilePage, ListFiles, MadeDirectory } from '../../../contract/files.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { parseJailPath } from '../../../files/jail/jail-path.ts'
import { closeSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { pathOf } from '../../files/file-path.ts'
import { sendArchive } from '../../files/file-reply.ts'
import { KeyHeader, keyOf } from '../../request/idempotency-key.ts'
import { ById } from '../../openapi/conversation-params.ts'
import { ByPath, CHANGE, PATH } from './path-params.ts'

export const directoryRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.get(
    '/conversations/:id/files',
    {
      schema: {
        ...describe('listFiles', 'List a directory of the workdir, or download it as one archive', [
          ...PATH,
          'invalid_cursor',
          'file_not_found',
        ]),
        params: ById,
        querystring: ListFiles,
        response: {
          200: {
            description: 'Entries sorted by name; with `format=tar.gz` the archive.',
            content: {
              'application/json': { schema: FilePage },
              'application/gzip': { schema: z.unknown().meta({ type: 'string', format: 'binary' }) },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const path = parseJailPath(request.query.path)
      const signal = closeSignal(reply)
      if (!request.query.format) return reply.send(await files.views.list(path, request.query, signal))
      return sendArchive(reply, await files.views.archive(path, signal), path.names.at(-1) ?? 'workdir')
    },
  )

  app.post(
    '/conversations/:id/dirs/*',
    {
      schema: {
        ...describe('makeDirectory', 'Create a directory and its missing parents', [
          ...CHANGE,
          'idempotency_in_flight',
          'idempotency_mismatch',
        ]),
        params: ByPath,
        headers: KeyHeader,
        response: { 200: MadeDirectory.describe('It already existed.'), 201: MadeDirectory },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const createdDirectory = await files.changes.makeDirectory(pathOf(request), keyOf(request), closeSignal(reply))
      return reply.code(createdDirectory.seq === undefined ? 200 : 201).send(createdDirectory)
    },
  )
}
