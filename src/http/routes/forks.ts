/** The route that forks a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ConversationView, ForkConversation } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { startForkRun } from '../../conversations/fork.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { KeyHeader, keyOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import type { Access } from '../../access/access.ts'
import { accessOf } from '../guards/authorize.ts'
import { hidingDeleted, mayConfigure, mayCreate, ownKey } from '../guards/limited-requests.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const forkRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.post(
    '/conversations/:id/fork',
    {
      schema: {
        ...describe('forkConversation', 'Fork a conversation: create one that continues from a point of this one', [
          ...CONVERSATION,
          'conversation_exists',
          'conversation_from_newer_version',
          'cursor_ahead',
          'llm_endpoint_refused',
          'unknown_cost',
          'waiting_for_client',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'workdir_too_large',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: ForkConversation.optional(),
        response: { 201: ConversationView },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const body = request.body ?? ForkConversation.parse({})
      const access = accessOf(request)
      mayCreate(access)
      if (body.llm_config) mayConfigure(access, { llm_config: body.llm_config })
      // Keys of creates and forks share a store, so the id of the original is part of the request's hash.
      const idempotency = ownKey(access, keyOf(request)?.with({ from: id, ...body }))
      const fork = await hidingDeleted(access, () => manager.fork(id, body, idempotency))
      return reply
        .code(201)
        .header('location', `/conversations/${fork.id}`)
        .send(shownTo(access, body.run ? await withRun(manager, fork) : fork))
    },
  )
}

/** Names of files, which warnings contain as well, are what the conversation has read or made. */
function shownTo(access: Access, fork: ConversationView): ConversationView {
  if (access.allows('read')) return fork
  const { files, warnings: _, ...rest } = fork
  if (!files) return rest
  const { left_out: __, ...shownFiles } = files
  return { ...rest, files: shownFiles }
}

async function withRun(manager: ConversationManager, { id, warnings, files }: ConversationView) {
  const release = manager.hold(id)
  try {
    const conversation = await manager.open(id)
    const run_id = await startForkRun(conversation)
    return { ...conversation.view(), ...withoutUndefined({ warnings, files }), run_id }
  } finally {
    release()
  }
}
