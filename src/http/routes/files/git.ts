/** Routes that read the user's own git repository in a workdir. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { GetGitDiff, GetGitFile, GetGitStatus, GitDiff, GitStatus } from '../../../contract/git.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { viewGitDiff } from '../../../conversations/view-diff.ts'
import { contentTypeOf, downloadHeaders } from '../../files/file-headers.ts'
import { ById, CONVERSATION } from '../../openapi/conversation-params.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { closeSignal } from '../../request/close-signal.ts'

const GIT = [
  ...CONVERSATION,
  'unsafe_path',
  'workdir_missing',
  'file_forbidden',
  'git_unavailable',
  'git_failed',
  'not_a_repository',
] as const

export const gitRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('files')

  app.get(
    '/conversations/:id/git/status',
    {
      schema: {
        ...describe('getGitStatus', 'Get the state of the git repository in the workdir', GIT),
        params: ById,
        querystring: GetGitStatus,
        response: { 200: GitStatus },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      return await files.git.status(request.query, closeSignal(reply))
    },
  )

  app.get(
    '/conversations/:id/git/diff',
    {
      schema: {
        ...describe('getGitDiff', 'Compare the files of the git repository with a commit', [
          ...GIT,
          'revision_not_found',
          'snapshot_not_found',
        ]),
        params: ById,
        querystring: GetGitDiff,
        response: { 200: GitDiff },
      },
    },
    async (request, reply) => {
      const conversation = await manager.open(request.params.id)
      return await viewGitDiff(conversation, request.query, closeSignal(reply))
    },
  )

  app.get(
    '/conversations/:id/git/file',
    {
      schema: {
        ...describe('getGitFile', 'Download a file of a commit', [
          ...GIT,
          'revision_not_found',
          'file_not_found',
          'not_a_file',
        ]),
        params: ById,
        querystring: GetGitFile,
        response: {
          200: {
            description: 'The content of the file, unchanged.',
            content: {
              'application/octet-stream': { schema: z.unknown().meta({ type: 'string', format: 'binary' }) },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { files } = await manager.open(request.params.id)
      const { content, version } = await files.git.file(request.query, closeSignal(reply))
      const name = request.query.path.slice(request.query.path.lastIndexOf('/') + 1)
      return reply
        .headers({ ...downloadHeaders(name), 'content-type': contentTypeOf(name), etag: `"${version}"` })
        .send(content)
    },
  )
}
