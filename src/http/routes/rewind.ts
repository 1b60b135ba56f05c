/** The route that takes a conversation, or its files, back to an earlier event. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ListConversations } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import { RewindOutcome, RewindQuery, RewindRequest } from '../../contract/rewind.ts'
import type { Access } from '../../access/access.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'

export const rewindRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.post(
    '/conversations/:id/rewind',
    {
      schema: {
        ...describe('rewindConversation', 'Take the conversation, or its files, back to an earlier event', [
          ...CONVERSATION,
          'snapshot_not_found',
          'conversation_changed',
          'files_changed',
          'workdir_in_use',
          'workdir_missing',
          'workdir_too_large',
          'cursor_ahead',
          'conversation_running',
          'conversation_from_newer_version',
          'idempotency_mismatch',
          'storage_full',
        ]),
        params: ById,
        querystring: RewindQuery,
        headers: KeyHeader,
        body: RewindRequest,
        response: { 200: RewindOutcome },
      },
    },
    async (request) => {
      const access = accessOf(request)
      const { files, force } = request.body
      if (files === true) access.require('files')
      if (force === true) access.require('approve')
      const conversation = await manager.open(request.params.id)
      const { processes, ...outcome } = await conversation.rewind(request.body, {
        dryRun: request.query.dry_run === true,
        by: access.key?.name,
        idempotency: idempotencyOf(request),
        others: () => refuseOthers(manager, access, conversation),
      })
      return { ...outcome, ...(processes && access.allows('read') && { processes }) }
    },
  )
}

const WORKING = ['running', 'waiting_for_confirmation', 'waiting_for_input', 'waiting_for_client'].join()

/** Throws `workdir_in_use` while the agent of another conversation, or a subagent of it, works in one of the directories. A key learns only of those it can see. */
async function refuseOthers(
  manager: ConversationManager,
  access: Access,
  { id, state: { settings } }: Awaited<ReturnType<ConversationManager['open']>>,
): Promise<void> {
  const own = [settings.workdir, ...(settings.additional_directories ?? [])]
  const running = ListConversations.parse({ status: WORKING, limit: 1000 })
  const isIn = ({
    workdir,
    additional_directories: more = [],
  }: {
    workdir: string
    additional_directories?: readonly string[] | undefined
  }) => [workdir, ...more].some((path) => own.some((root) => overlap(path, root)))
  const { items } = await manager.list(running)
  const all = [...items, ...(await manager.pages.inBackground())]
  const others = all.filter((other) => other.id !== id && isIn(other))
  if (others.length === 0) return
  const isVisible = manager.hidden.visibleTo(visibleTo(access))
  const knownView = others.find((other) => {
    const summary = manager.ownerOf(other.id)
    return summary && (isVisible?.(summary) ?? true)
  })
  throw new Problem(
    'workdir_in_use',
    `${knownView ? `Conversation ${knownView.id}` : 'Another conversation'} works in this directory. Pause it first, or restore the files with force: true.`,
    knownView && { details: { conversation_id: knownView.id } },
  )
}

const overlap = (one: string, other: string) =>
  one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`)
