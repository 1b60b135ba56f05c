/** Routes that create, show, list and delete conversations. */
import type { FastifyReply } from 'fastify'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import {
  ConversationCount,
  ConversationPage,
  ConversationView,
  CountConversations,
  CreateConversation,
  ListConversations,
} from '../../contract/conversation.ts'
import { ConversationSummaries } from '../../contract/conversations/summary.ts'
import { DEFAULT_WAIT_S } from '../../contract/run.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { startFirstRun } from '../../conversations/runs/first-run.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { closeSignal } from '../request/close-signal.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'
import { createAs, mayRun, ownKey } from '../guards/limited-requests.ts'
import { createOrFind } from '../guards/create-or-find.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

/** Errors of creating a conversation. */
const CREATE = [
  'conversation_exists',
  'idempotency_in_flight',
  'idempotency_mismatch',
  'conversation_deleted',
  'unsafe_path',
  'network_not_permitted',
  'network_mode_unavailable',
  'storage_full',
  'profile_not_found',
  'limit_reached',
] as const

export const conversationRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')
  app.post(
    '/conversations',
    {
      schema: {
        ...describe('createConversation', 'Create a conversation', CREATE),
        headers: KeyHeader,
        body: CreateConversation,
        response: {
          200: ConversationView.describe('With `external_id`: the one that there is.'),
          201: ConversationView,
        },
      },
    },
    async (request, reply) => {
      const access = accessOf(request)
      const wish = createAs(access, request.body)
      mayRun(access, { wait: wish.wait ?? false })
      const { view: conversation, isNew } = await createOrFind(manager, access, wish, {
        idempotency: ownKey(access, idempotencyOf(request)),
      })
      if (!isNew) return access.allows('read') ? withReadFields(manager, conversation) : conversation
      reply.code(201).header('location', `/conversations/${conversation.id}`)
      return wish.run ? await withFirstRun(manager, conversation, wish, reply) : conversation
    },
  )

  app.get(
    '/conversations/:id',
    {
      schema: {
        ...describe('getConversation', 'Get a conversation', CONVERSATION),
        params: ById,
        response: { 200: ConversationView },
      },
    },
    async (request) => withReadFields(manager, (await manager.open(request.params.id)).view()),
  )

  app.delete(
    '/conversations/:id',
    {
      schema: {
        ...describe('deleteConversation', 'Delete a conversation with its data and processes', CONVERSATION),
        params: ById,
        response: { 204: z.undefined().describe('The conversation is deleted and its processes have ended.') },
      },
    },
    async (request, reply) => {
      await manager.delete(request.params.id)
      return reply.code(204).send()
    },
  )
}

/** Lists of conversations, in full and as short rows, and their counts. */
export const conversationListRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (
  app,
  { manager },
) => {
  const describe = describeRoute('conversations')

  app.get(
    '/conversations',
    {
      schema: {
        ...describe('listConversations', 'List conversations', ['invalid_cursor']),
        querystring: ListConversations,
        response: { 200: ConversationPage },
      },
    },
    async (request) => {
      const { items, ...page } = await manager.list(request.query, visibleTo(accessOf(request)))
      return { ...page, items: items.map((view) => withReadFields(manager, view)) }
    },
  )

  app.get(
    '/conversations/count',
    {
      schema: {
        ...describe('countConversations', 'Count conversations'),
        querystring: CountConversations,
        response: { 200: ConversationCount },
      },
    },
    async (request) => {
      await manager.upToDate()
      return manager.count(request.query, visibleTo(accessOf(request)))
    },
  )

  app.get(
    '/conversations/summaries',
    {
      schema: {
        ...describe('listConversationSummaries', 'List conversations as short rows', ['invalid_cursor']),
        querystring: ListConversations,
        response: { 200: ConversationSummaries },
      },
    },
    async (request) => await manager.summaries(request.query, visibleTo(accessOf(request))),
  )
}

/** Adds what a key sees only of a conversation that it may read. */
function withReadFields(manager: ConversationManager, view: ConversationView): ConversationView {
  const preview = manager.ownerOf(view.id)?.preview
  const isAttended = manager.attendance.has(view.id)
  return { ...view, ...(preview && { preview }), ...(isAttended && { attended: true as const }) }
}

/** Starts the agent in a new conversation, and with `wait` returns what its run ended with. */
async function withFirstRun(
  manager: ConversationManager,
  view: ConversationView,
  { wait, timeout = DEFAULT_WAIT_S }: Pick<CreateConversation, 'wait' | 'timeout'>,
  reply: FastifyReply,
): Promise<ConversationView> {
  const release = manager.hold(view.id)
  try {
    const conversation = await manager.open(view.id)
    const run_id = await startFirstRun(conversation)
    const outcome = wait ? await conversation.waitForRun(run_id, timeout, closeSignal(reply)) : { run_id }
    accessOf(reply.request).requireValid()
    return { ...conversation.view(), ...withoutUndefined({ warnings: view.warnings }), ...outcome }
  } finally {
    release()
  }
}
