/** Routes that make, find, configure and delete conversations. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { AgentInfo } from '../../contract/agent-info.ts'
import {
  Conversation,
  ConversationId,
  ConversationPage,
  Count,
  CountConversations,
  CreateConversation,
  ForkConversation,
  ListConversations,
  UpdateConfig,
} from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { KeyHeader, idempotencyOf, keyOf } from '../idempotency-key.ts'
import { describeRoute } from '../describe-route.ts'

export const ById = z.strictObject({ id: ConversationId })

export const conversationRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.post(
    '/conversations',
    {
      schema: {
        ...describe('createConversation', 'Create a conversation', [
          'conversation_exists',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'conversation_deleted',
          'unsupported_field',
          'unsafe_path',
          'network_not_permitted',
          'network_mode_unavailable',
          'storage_full',
        ]),
        headers: KeyHeader,
        body: CreateConversation,
        response: { 201: Conversation },
      },
    },
    async (request, reply) => {
      const conversation = await manager.create(request.body, idempotencyOf(request))
      return reply.code(201).header('location', `/conversations/${conversation.id}`).send(conversation)
    },
  )

  app.get(
    '/conversations',
    {
      schema: {
        ...describe('listConversations', 'List conversations', ['invalid_cursor']),
        querystring: ListConversations,
        response: { 200: ConversationPage },
      },
    },
    (request) => manager.list(request.query),
  )

  app.get(
    '/conversations/count',
    {
      schema: {
        ...describe('countConversations', 'Count conversations'),
        querystring: CountConversations,
        response: { 200: Count },
      },
    },
    async (request) => ({ count: manager.count(request.query) }),
  )

  app.get(
    '/conversations/:id',
    {
      schema: {
        ...describe('getConversation', 'Get a conversation', CONVERSATION),
        params: ById,
        response: { 200: Conversation },
      },
    },
    (request) => manager.view(request.params.id),
  )

  app.get(
    '/conversations/:id/agent-info',
    {
      schema: {
        ...describe('getAgentInfo', 'Get the configuration of the agent: model, tools, prompt, limits', CONVERSATION),
        params: ById,
        response: { 200: AgentInfo },
      },
    },
    async (request) => (await manager.open(request.params.id)).agentInfo(),
  )

  app.put(
    '/conversations/:id/config',
    {
      schema: {
        ...describe('updateConfig', 'Change the configuration; allowed during a run', [
          ...CONVERSATION,
          'conversation_running',
          'unsafe_path',
          'network_not_permitted',
          'network_mode_unavailable',
          'storage_full',
        ]),
        params: ById,
        body: UpdateConfig,
        response: { 200: Conversation },
      },
    },
    (request) => manager.configure(request.params.id, request.body),
  )

  app.post(
    '/conversations/:id/fork',
    {
      schema: {
        ...describe('forkConversation', 'Fork a conversation: create one that continues from a point of this one', [
          ...CONVERSATION,
          'conversation_exists',
          'conversation_from_newer_version',
          'cursor_ahead',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'workdir_too_large',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: ForkConversation.optional(),
        response: { 201: Conversation },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const body = request.body ?? ForkConversation.parse({})
      // Keys of creates and forks share a store, so the original is a part of what was asked for.
      const fork = await manager.fork(id, body, keyOf(request)?.with({ from: id, ...body }))
      return reply.code(201).header('location', `/conversations/${fork.id}`).send(fork)
    },
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

/** What every route of one conversation may answer. */
export const CONVERSATION = [
  'conversation_not_found',
  'conversation_deleted',
  'conversation_damaged',
  'storage_failed',
] as const
