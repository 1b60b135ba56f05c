/** The live stream of the events of a conversation (SSE). */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ResumeHeaders, StreamEvents } from '../../../contract/events-api.ts'
import { StreamEvent } from '../../../contract/stream-frames.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { withoutUndefined } from '../../../lib/without-undefined.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import { closeSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { requireEventStream, seqAfter, streamEvents } from '../../streams/sse-reply.ts'
import type { StreamSlots } from '../../streams/stream-slots.ts'
import { ById, CONVERSATION } from '../../openapi/conversation-params.ts'

type EventStreamDeps = {
  manager: ConversationManager
  metrics: Metrics
  streamSlots: StreamSlots
  streamBufferBytes: number
}

export const eventStreamRoutes: FastifyPluginAsyncZod<EventStreamDeps> = async (app, deps) => {
  const { manager } = deps
  const describe = describeRoute('events')

  app.get(
    '/conversations/:id/events/stream',
    {
      sse: { kind: 'only', heartbeat: false },
      config: { takesTicket: 'stream', outlivesOwner: true },
      exposeHeadRoute: false, // a HEAD request would stay open without a response
      preHandler: requireEventStream,
      schema: {
        ...describe('streamEvents', 'Follow events live (SSE)', [
          ...CONVERSATION,
          'not_acceptable',
          'invalid_cursor',
          'cursor_ahead',
          'client_hooks_not_found',
          'too_many_streams',
        ]),
        params: ById,
        querystring: StreamEvents,
        headers: ResumeHeaders,
        response: {
          200: {
            description:
              'Events when they are stored, each with its seq as `id`, and a comment every 15 s. The last frame is `deleted`, `server_closing` or `lagged`.',
            content: { 'text/event-stream': { schema: StreamEvent } },
          },
        },
      },
    },
    async (request, reply) => {
      const { after_seq, types, deltas, hook_client: client } = request.query
      const conversation = request.remote ?? (await manager.open(request.params.id).catch(request.elsewhere))
      const { log, clientHooks } =
        'open' in conversation ? await conversation.open({ deltas, client, signal: closeSignal(reply) }) : conversation
      const requests = client === undefined ? undefined : clientHooks.requestsTo(client)
      const afterSeq = seqAfter(request.headers['last-event-id'], after_seq)
      const leave = deps.streamSlots.take(log.conversationId)
      try {
        await streamEvents(reply, log, {
          ...withoutUndefined({ afterSeq, types, requests, maxText: request.query.max_text }),
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
