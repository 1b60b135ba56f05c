/** Routes for the stored events of a conversation: list, get, count and post. */
import type { FastifyReply } from 'fastify'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { Count } from '../../contract/values/page.ts'
import { Event } from '../../contract/events/event.ts'
import {
  CountEvents,
  EventPage,
  GetEventPart,
  ListEvents,
  PostClientEvent,
  PostedClientEvent,
} from '../../contract/events-api.ts'
import { Problem } from '../../contract/problem.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { partAt } from '../../events/cut-texts.ts'
import { readEventPage } from '../../events/event-page.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { downloadHeaders } from '../files/file-headers.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const eventRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
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
      const { log, state } = await manager.open(request.params.id)
      return sendPage(reply, await readEventPage(log, request.query, state.rewound))
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
      const { clientEvents } = await manager.open(id)
      const postedEvent = await clientEvents.post(request.body, idempotencyOf(request))
      return reply.code(201).header('location', `/conversations/${id}/events/${postedEvent.event_id}`).send(postedEvent)
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
      const { log } = await manager.open(request.params.id)
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
      const { log } = await manager.open(request.params.id)
      const foundEvent = await log.find(request.params.event_id)
      if (!foundEvent)
        throw new Problem('event_not_found', `There is no event ${request.params.event_id} in this conversation.`)
      return foundEvent.event
    },
  )
  registerPart(app, { manager })
}

function registerPart(app: Parameters<typeof eventRoutes>[0], { manager }: { manager: ConversationManager }): void {
  const describe = describeRoute('events')

  app.get(
    '/conversations/:id/events/:event_id/part',
    {
      exposeHeadRoute: false,
      schema: {
        ...describe('getEventPart', 'Get one part of an event as it is', [...CONVERSATION, 'event_not_found']),
        params: z.strictObject({ id: ConversationId, event_id: z.uuid().toLowerCase() }),
        querystring: GetEventPart,
        response: {
          200: {
            description: 'A text, an image, or JSON for any other value, served as an attachment.',
            content: {
              ...Object.fromEntries(BYTES.map((type) => [type, { schema: Binary }])),
              'application/json': { schema: z.unknown().describe('Any other value of the event.') },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { event_id } = request.params
      const { log } = await manager.open(request.params.id)
      const event = (await log.find(event_id))?.event
      const part = event && partAt(event, request.query.pointer)
      if (!part) throw new Problem('event_not_found', `There is no event ${event_id}, or no such part of it.`)
      // Whatever the agent has written, no browser shows it as a page of this server.
      void reply.headers({ ...downloadHeaders(`event-${event.seq}`), 'content-type': part.mediaType })
      return await reply.serializer(String).send(Buffer.from(part.content))
    },
  )
}

const BYTES = ['application/octet-stream', 'text/plain', 'image/*']
const Binary = z.unknown().meta({ type: 'string', format: 'binary' })

/** Sends the stored lines of the log unchanged: parsing and serialising them would be most of the work. */
function sendPage(reply: FastifyReply, { events, nextPageId }: Awaited<ReturnType<typeof readEventPage>>) {
  const items = events.map((storedEvent) => storedEvent.json).join(',')
  return reply
    .type('application/json')
    .serializer(String)
    .send(`{"items":[${items}],"next_page_id":${JSON.stringify(nextPageId)}}`)
}
