/** The firehose: the events of all conversations, as an event stream and as a WebSocket. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ResumeHeaders, StreamFirehose } from '../../../contract/events-api.ts'
import { FirehoseStreamEvent } from '../../../contract/stream-frames.ts'
import { Problem } from '../../../contract/problem.ts'
import type { FirehoseReader } from '../../../events/firehose/firehose-reader.ts'
import type { Firehose } from '../../../events/firehose.ts'
import type { PublishedRecord } from '../../../events/sse-frame.ts'
import { withoutUndefined } from '../../../lib/without-undefined.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import type { Access, OwnedConversation } from '../../../access/access.ts'
import { accessOf, visibleTo } from '../../guards/authorize.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { ChangedSummaries } from '../../streams/changed-summaries.ts'
import type { ReadSummaries } from '../../streams/changed-summaries.ts'
import { requireEventStream, streamEvents } from '../../streams/sse-reply.ts'
import type { FirehoseSlots } from '../../streams/stream-slots.ts'
import type { SocketConnection } from '../../socket/connection.ts'
import type { FirstFrameKey } from '../../guards/first-frame-key.ts'
import { sendFeed } from '../../socket/send-feed.ts'
import { upgradeWith } from '../../socket/socket-route.ts'

export type FirehoseRouteDeps = {
  readonly firehose: Firehose
  /** Returns undefined for a conversation that does not exist. */
  readonly ownerOf: (conversationId: string) => OwnedConversation | undefined
  /** True for the fork of a replay: only a client that names it gets its events. */
  readonly isHidden: (conversationId: string) => boolean
  readonly readSummaries: ReadSummaries
  readonly metrics: Metrics
  readonly slots: FirehoseSlots
  readonly firstFrameKey: FirstFrameKey
  readonly streamBufferBytes: number
}

const CURSOR_HEADER = 'x-firehose-cursor'
const PROBLEMS = [
  'not_acceptable',
  'invalid_cursor',
  'cursor_ahead',
  'origin_refused',
  'too_many_streams',
  'storage_failed',
] as const

export const firehoseRoutes: FastifyPluginAsyncZod<FirehoseRouteDeps> = async (app, deps) => {
  const { firehose, metrics, slots, firstFrameKey, streamBufferBytes: bufferBytes } = deps
  const describe = describeRoute('events')

  const upgrade = upgradeWith(firstFrameKey, {
    schema: { querystring: StreamFirehose },
    async check({ query }) {
      using reader = await firehose.open()
      positionIn(reader, query.cursor)
      slots.take()() // checks before the upgrade that a slot is free; it is taken afterwards
    },
    async serve(socket, { query, request }) {
      using stack = new DisposableStack()
      stack.defer(slots.take())
      using reader = await firehose.open()
      const afterSeq = positionIn(reader, query.cursor) ?? reader.head
      const { isLimited } = accessOf(request)
      const answering = refuseAll(socket)
      await sendFeed(socket, reader, {
        ...wantedOf(query, deps, { access: accessOf(request), reader }),
        afterSeq,
        bufferBytes,
        onOpen: () => metrics.streamOpened('websocket'),
        greetings: [{ type: 'ready', cursor: isLimited ? reader.freshCursorAt(afterSeq) : reader.cursorAt(afterSeq) }],
        ...(!isLimited && {
          reached: (position: number) => ({ type: 'reached', cursor: reader.cursorAt(position) }),
        }),
      })
      await answering
    },
  })

  app.route({
    method: 'GET',
    url: '/firehose',
    sse: { kind: 'only', heartbeat: false },
    config: { socket: true, takesTicket: 'stream' },
    exposeHeadRoute: false, // a HEAD request would stay open without a response
    schema: {
      ...describe('streamFirehose', 'Follow the events of all conversations live (SSE; also a WebSocket)', PROBLEMS),
      querystring: StreamFirehose,
      headers: ResumeHeaders,
      response: {
        200: {
          description:
            'Events when they are stored, each with the cursor of the firehose as `id`, in order within a conversation, and a comment every 15 s. `conversation_deleted` reports a deleted conversation; its events are no longer sent. The last frame is `server_closing` or `lagged`.',
          content: { 'text/event-stream': { schema: FirehoseStreamEvent } },
        },
      },
    },
    preHandler: [upgrade, requireEventStream],
    async handler(request, reply) {
      using stack = new DisposableStack()
      stack.defer(slots.take())
      using reader = await firehose.open()
      const afterSeq = positionIn(reader, request.headers['last-event-id'] ?? request.query.cursor) ?? reader.head
      const { isLimited } = accessOf(request)
      // A reader that is cut off before its first event continues here.
      reply.header(CURSOR_HEADER, isLimited ? reader.freshCursorAt(afterSeq) : reader.cursorAt(afterSeq))
      await streamEvents(reply, reader, {
        ...wantedOf(request.query, deps, { access: accessOf(request), reader }),
        afterSeq,
        bufferBytes,
        onOpen: () => metrics.streamOpened('sse'),
        cursorAt: reader.cursorAt,
        hidesProgress: isLimited,
      })
    },
  })
}

/** Returns undefined to start with new events. */
function positionIn(reader: FirehoseReader, cursor: string | undefined): number | undefined {
  return cursor === undefined ? undefined : reader.positionOf(cursor)
}

function wantedOf(
  { types, deltas, conversation_ids: ids, summaries }: StreamFirehose,
  { ownerOf, isHidden, readSummaries: read }: FirehoseRouteDeps,
  { access, reader }: { readonly access: Access; readonly reader: FirehoseReader },
) {
  const isVisible = visibleTo(access)
  const sees = (record: PublishedRecord): boolean => {
    // A deleted conversation has no owner any more; the notice of its deletion has.
    const conversation = 'owner' in record ? record.owner : ownerOf(record.event.conversation_id)
    return conversation !== undefined && isVisible?.(conversation) === true
  }
  const isNamed = (id: string) => (ids ? ids.has(id) : !isHidden(id))
  const only = (record: PublishedRecord) => isNamed(record.event.conversation_id) && (!isVisible || sees(record))
  const requests = summaries ? new ChangedSummaries(reader, { read, only }) : undefined
  return { ...withoutUndefined({ types, only, requests }), deltas }
}

/** Refuses every frame until the connection closes. */
async function refuseAll(socket: SocketConnection): Promise<void> {
  const problem = new Problem(
    'unsupported_frame',
    'The firehose accepts no frames. Connect to a conversation to send one.',
  )
  for await (const _ of socket.frames) await socket.send({ type: 'problem', ...problem.toBody() })
}
