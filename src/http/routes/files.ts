/** Routes that show the files of a workdir, and those that change them without a body. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import {
  CountFiles,
  DeleteFile,
  FileCount,
  FileInfo,
  FileMatches,
  FilePage,
  GetFile,
  ListFiles,
  MadeDirectory,
  SearchFiles,
} from '../../contract/files.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { parseJailPath } from '../../files/jail-path.ts'
import { closeSignal } from '../close-signal.ts'
import { describeRoute } from '../describe-route.ts'
import { contentTypeOf } from '../files/file-headers.ts'
import { pathOf } from '../files/file-path.ts'
import { sendArchive, sendFile } from '../files/file-reply.ts'
import { KeyHeader, keyOf } from '../idempotency-key.ts'
import { publishingOf } from '../files/preconditions.ts'
import { ById, CONVERSATION } from './conversations.ts'

export const ByPath = z.strictObject({
  id: ConversationId,
  '*': z.string().describe('A path in the workdir, percent-encoded once. Its slashes may be encoded too.'),
})

/** What every route of a path may answer. */
export const PATH = [...CONVERSATION, 'unsafe_path', 'workdir_missing', 'not_a_directory', 'file_forbidden'] as const

const CHANGE = [...PATH, 'disk_quota_exceeded', 'storage_full'] as const

const binary = (description: string, type = 'application/octet-stream') => ({
  description,
  content: { [type]: { schema: z.unknown().meta({ type: 'string', format: 'binary' }) } },
})

export const fileRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
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
      if (!request.query.format) return reply.send(await files.list(path, request.query, signal))
      return sendArchive(reply, await files.archive(path, signal), path.names.at(-1) ?? 'workdir')
    },
  )

  app.get(
    '/conversations/:id/files/*',
    {
      exposeHeadRoute: false, // it has a separate one, which reads nothing
      schema: {
        ...describe('getFile', 'Download a file or a part of it; a directory as `tar.gz`', [
          ...PATH,
          'file_not_found',
          'not_a_file',
          'precondition_failed',
          'range_not_satisfiable',
        ]),
        params: ByPath,
        querystring: GetFile,
        headers: z.object({
          range: z.string().optional().describe('One byte range, such as `bytes=0-99`.'),
          'if-range': z.string().optional(),
          'if-match': z.string().optional(),
          'if-none-match': z.string().optional(),
          'if-modified-since': z.string().optional(),
          'if-unmodified-since': z.string().optional(),
        }),
        response: {
          200: binary(
            'The file, served as an attachment. Content that browsers could execute has the type plain text.',
          ),
          206: binary('The requested range.'),
          304: z.undefined().describe('The client has the current version.'),
        },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const path = pathOf(request)
      const name = path.names.at(-1) ?? 'workdir'
      const signal = closeSignal(reply)
      if (request.query.format) return sendArchive(reply, await files.archive(path, signal), name)
      return await sendFile(request, reply, await files.open(path, signal), name)
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
      if (!request.query.format) return await sendFile(request, reply, await files.open(path, signal), name)
      await files.list(path, ListFiles.parse({ limit: 1 }), signal)
      return sendArchive(reply, undefined, name)
    },
  )

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
      await files.remove(pathOf(request), { ...request.query, precondition }, closeSignal(reply))
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
      const info = await files.info(pathOf(request), closeSignal(reply))
      return { ...info, ...(info.type === 'file' && { content_type: contentTypeOf(info.name) }) }
    },
  )

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
      return await files.search(parseJailPath(request.query.path), request.query, closeSignal(reply))
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
      return await files.count(parseJailPath(request.query.path), closeSignal(reply))
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
      const made = await files.makeDirectory(pathOf(request), keyOf(request), closeSignal(reply))
      return reply.code(made.seq === undefined ? 200 : 201).send(made)
    },
  )
}
