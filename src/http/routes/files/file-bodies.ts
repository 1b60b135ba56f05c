/** Routes that receive files: their bodies are streams of any size. */
import multipart from '@fastify/multipart'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { UploadFiles, UploadedFiles, WrittenFile } from '../../../contract/files.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { parseJailPath } from '../../../files/jail/jail-path.ts'
import { cuttingSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { pathOf } from '../../files/file-path.ts'
import { KeyHeader, keyOf } from '../../request/idempotency-key.ts'
import { contentOf, filesOf } from '../../files/incoming-files.ts'
import { publishingOf } from '../../files/preconditions.ts'
import { ById } from '../../openapi/conversation-params.ts'
import { ByPath, PATH } from './path-params.ts'

const TAKES_FILES = [
  ...PATH,
  'not_a_file',
  'body_too_large',
  'precondition_failed',
  'disk_quota_exceeded',
  'storage_full',
] as const

const Binary = z.unknown().meta({ type: 'string', format: 'binary' })

const Form = z.unknown().meta({
  type: 'object',
  properties: { file: { type: 'array', minItems: 1, items: { type: 'string', format: 'binary' } } },
  required: ['file'],
})

export const fileBodyRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager; maxUploadBytes: number }> = async (
  app,
  { manager, maxUploadBytes: maxBytes },
) => {
  const describe = describeRoute('files')
  app.removeAllContentTypeParsers()
  await app.register(multipart)
  app.addContentTypeParser('*', (_request, payload, callback) => callback(null, payload))

  app.post(
    '/conversations/:id/files/upload',
    {
      config: { takesFiles: true },
      schema: {
        ...describe('uploadFiles', 'Upload one or more files: all of them or none', [
          ...TAKES_FILES,
          'unsupported_media_type',
          'idempotency_in_flight',
          'idempotency_mismatch',
        ]),
        consumes: ['multipart/form-data'],
        params: ById,
        querystring: UploadFiles,
        headers: KeyHeader,
        body: Form,
        response: { 201: UploadedFiles },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const incoming = { content: filesOf(request, maxBytes), maxBytes, signal: cuttingSignal(reply) }
      const items = await files.changes.upload(parseJailPath(request.query.path), incoming, keyOf(request))
      return reply.code(201).send({ items })
    },
  )

  app.put(
    '/conversations/:id/files/*',
    {
      config: { takesFiles: true },
      schema: {
        ...describe(
          'putFile',
          'Write a file; an empty body creates an empty file, or updates the modification time of an existing one',
          TAKES_FILES,
        ),
        // Any other type is accepted as well; generated clients need one name.
        consumes: ['application/octet-stream'],
        params: ByPath,
        headers: z.object({
          'if-match': z.string().optional().describe('Write only if the file still has this entity tag.'),
          'if-none-match': z.string().optional().describe('`*`: write only if nothing exists at this path.'),
        }),
        body: Binary,
        response: { 200: WrittenFile.describe('An existing file was replaced.'), 201: WrittenFile },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const incoming = { content: contentOf(request, maxBytes), maxBytes, signal: cuttingSignal(reply) }
      const { file, created, etag } = await files.changes.write(
        pathOf(request),
        incoming,
        publishingOf(request.headers),
      )
      return reply
        .code(created ? 201 : 200)
        .header('etag', etag)
        .send(file)
    },
  )
}
