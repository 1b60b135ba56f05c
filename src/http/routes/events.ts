/** Routes for a conversation's events: the list, one, the count, the live stream, and a client's own. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId, Count } from '../../contract/conversation.ts'
import { Event } from '../../contract/events/event.ts'
import {
  CountEvents,
  EventPage,
  ListEvents,
  PostClientEvent,
  PostedClientEvent,
  StreamEvents,
  StreamFrame,
} from '../../contract/events/events-api.ts'
import { Problem } from '../../contract/problem.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { readEventPage } from '../../events/event-page.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { KeyHeader, idempotencyOf } from '../idempotency-key.ts'
import { describeRoute } from '../describe-route.ts'
import { requireEventStream, seqAfter, streamEvents } from '../streams/sse-reply.ts'
import type { StreamSlots } from '../streams/stream-slots.ts'
import { ById, CONVERSATION } from './conversations.ts'

type EventRouteDeps = {
  manager: ConversationManager
  metrics: Metrics
  streamSlots: StreamSlots
  streamBufferBytes: number
}

export const eventRoutes: FastifyPluginAsyncZod<EventRouteDeps> = async (app, deps) => {
  const { manager } = deps
  const describe = describeRoute('events')

  app.get(
    '/conversations/:id/events',
    {
      schema: {
        ...describe('listEvents', 'List events', [...CONVERSATION, 'invalid_cursor']),
        params: ById,
        querystring: ListEvents,
        response: { 200: EventPage },
      },
    },
    async (request, reply) => {
      const { log } = await manager.get(request.params.id)
      const { events, nextPageId } = await readEventPage(log, request.query)
      // The lines of the log as they are: parsing them only to write them out again would be most of the work.
      const items = events.map((stored) => stored.json).join(',')
      return reply
        .type('application/json')
        .serializer(String)
        .send(`{"items":[${items}],"next_page_id":${JSON.stringify(nextPageId)}}` as never)
    },
  )

  app.post(
    '/conversations/:id/events',
    {
      schema: {
        ...describe('postEvent', 'Store an event of a client; the agent does not see it', [
          ...CONVERSATION,
          'body_too_large',
          'idempotency_mismatch',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: PostClientEvent,
        response: { 201: PostedClientEvent },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const { clientEvents } = await manager.get(id)
      const posted = await clientEvents.post(request.body, idempotencyOf(request))
      return reply.code(201).header('location', `/conversations/${id}/events/${posted.event_id}`).send(posted)
    },
  )

  app.get(
    '/conversations/:id/events/count',
    {
      schema: {
        ...describe('countEvents', 'Count events', CONVERSATION),
        params: ById,
        querystring: CountEvents,
        response: { 200: Count },
      },
    },
    async (request) => {
      const { log } = await manager.get(request.params.id)
      return { count: await log.count(withoutUndefined(request.query)) }
    },
  )

  app.get(
    '/conversations/:id/events/:event_id',
    {
      schema: {
        ...describe('getEvent', 'Get an event', [...CONVERSATION, 'event_not_found']),
        params: z.strictObject({ id: ConversationId, event_id: z.uuid().toLowerCase() }),
        response: { 200: Event },
      },
    },
    async (request) => {
      const { log } = await manager.get(request.params.id)
      const found = await log.find(request.params.event_id)
      if (!found)
        throw new Problem('event_not_found', `There is no event ${request.params.event_id} in this conversation.`)
      return found.event
    },
  )

  app.get(
    '/conversations/:id/events/stream',
    {
      sse: { kind: 'only', heartbeat: false },
      exposeHeadRoute: false, // a HEAD would hold the line and never say a word
      preHandler: requireEventStream,
      schema: {
        ...describe('streamEvents', 'Follow events live (SSE)', [
          ...CONVERSATION,
          'not_acceptable',
          'invalid_cursor',
          'cursor_ahead',
          'too_many_streams',
        ]),
        params: ById,
        querystring: StreamEvents,
        headers: z.object({
          'last-event-id': z
            .string()
            .optional()
            .describe('The last `id` that the client received. The stream continues after it.'),
        }),
        response: {
          200: {
            description:
              'Events when they are stored, each with its seq as `id`, and a comment every 15 s. The last frame is `deleted`, `server_closing` or `lagged`.',
            content: { 'text/event-stream': { schema: StreamFrame } },
          },
        },
      },
    },
    async (request, reply) => {
      const { log } = await manager.get(request.params.id)
      const { after_seq, types, deltas } = request.query
      const afterSeq = seqAfter(request.headers['last-event-id'], after_seq)
      const leave = deps.streamSlots.take(log.conversationId)
      try {
        await streamEvents(reply, log, {
          ...withoutUndefined({ afterSeq, types }),
          deltas,
          bufferBytes: deps.streamBufferBytes,
          onOpen: () => deps.metrics.streamOpened('sse'),
        })
      } finally {
        leave()
      }
    },
  )
}
