/** Routes that download a file or a directory, and show its headers. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { GetFile, GetFileAt, ListFiles } from '../../../contract/files.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { closeSignal, cuttingSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { pathOf } from '../../files/file-path.ts'
import { sendArchive, sendContent, sendFile } from '../../files/file-reply.ts'
import { ByPath, PATH } from './path-params.ts'

const Binary = z.unknown().meta({ type: 'string', format: 'binary' })

/** The type that generated clients use comes first. `contentTypeOf` always chooses one that no browser executes. */
const DOWNLOAD_TYPES = ['application/octet-stream', 'text/plain', 'application/*', 'image/*', 'audio/*', 'video/*']

const DownloadHeaders = z.object({
  range: z.string().optional().describe('One byte range, such as `bytes=0-99`.'),
  'if-range': z.string().optional(),
  'if-match': z.string().optional(),
  'if-none-match': z.string().optional(),
  'if-modified-since': z.string().optional(),
  'if-unmodified-since': z.string().optional(),
})

const download = (description: string) => ({
  description,
  content: Object.fromEntries(DOWNLOAD_TYPES.map((type) => [type, { schema: Binary }])),
})

export const downloadRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.get(
    '/conversations/:id/files/*',
    {
      exposeHeadRoute: false, // HEAD has a separate route, which does not read the file
      config: { takesTicket: 'file' },
      schema: {
        ...describe('getFile', 'Download a file or a part of it; a directory as `tar.gz`', [
          ...PATH,
          'file_not_found',
          'cursor_ahead',
          'snapshot_not_found',
          'not_a_file',
          'precondition_failed',
          'range_not_satisfiable',
        ]),
        params: ByPath,
        querystring: GetFileAt,
        headers: DownloadHeaders,
        response: {
          200: download(
            'The file, served as an attachment. Content that browsers could execute has the type plain text.',
          ),
          206: download('The requested range.'),
          304: z.undefined().describe('The client has the current version.'),
        },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const path = pathOf(request)
      const name = path.names.at(-1) ?? 'workdir'
      const { at } = request.query
      if (at !== undefined) {
        const { content, entry } = await files.snapshots.readFile(path.names.join('/'), at)
        return sendContent(reply, content, { name, version: entry.blob })
      }
      const signal = cuttingSignal(reply)
      if (request.query.format) return sendArchive(reply, await files.views.archive(path, signal), name)
      return await sendFile(request, reply, await files.views.open(path, signal), name)
    },
  )

  app.head(
    '/conversations/:id/files/*',
    {
      config: { swagger: { exposeHeadRoute: true } },
      schema: {
        ...describe('headFile', 'Get the headers of a download', [
          ...PATH,
          'file_not_found',
          'not_a_file',
          'precondition_failed',
        ]),
        params: ByPath,
        querystring: GetFile,
        response: {
          200: z.undefined().describe('The headers contain size, type, entity tag and modification time.'),
          304: z.undefined().describe('The client has the current version.'),
        },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const path = pathOf(request)
      const name = path.names.at(-1) ?? 'workdir'
      const signal = closeSignal(reply)
      if (!request.query.format) return await sendFile(request, reply, await files.views.open(path, signal), name)
      await files.views.list(path, ListFiles.parse({ limit: 1 }), signal)
      return sendArchive(reply, undefined, name)
    },
  )
}
