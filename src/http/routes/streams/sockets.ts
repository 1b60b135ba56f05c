/** WebSocket routes of one conversation: for an existing one, and one that creates a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import type { FastifyRequest } from 'fastify'
import type { ConversationView } from '../../../contract/conversation.ts'
import { startFirstRun } from '../../../conversations/runs/first-run.ts'
import { CreateConversation } from '../../../contract/conversation.ts'
import { StreamEvents, StreamNewConversation } from '../../../contract/events-api.ts'
import { PROBLEMS, Problem } from '../../../contract/problem.ts'
import type { ConversationCreatedFrame } from '../../../contract/socket.ts'
import { CreateFrame } from '../../../contract/socket.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { requireSeq } from '../../../events/event-feed.ts'
import { withoutUndefined } from '../../../lib/without-undefined.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import { accessOf } from '../../guards/authorize.ts'
import { createAs } from '../../guards/limited-requests.ts'
import { createOrFind } from '../../guards/create-or-find.ts'
import { problemFor } from '../../request/problem-handler.ts'
import { idempotencyIn, messageMarksOf } from '../../request/idempotency-key.ts'
import { logCommand } from '../../request/request-log.ts'
import type { CommandDeps } from '../../socket/command-frames.ts'
import { answerCommand, parseFrame, parseJson } from '../../socket/command-frames.ts'
import type { SocketConnection } from '../../socket/connection.ts'
import type { FirstFrameKey } from '../../guards/first-frame-key.ts'
import { endWithProblem, sendFeed } from '../../socket/send-feed.ts'
import { socketRoute } from '../../socket/socket-route.ts'
import type { StreamSlots } from '../../streams/stream-slots.ts'
import { ById } from '../../openapi/conversation-params.ts'

export type SocketDeps = {
  readonly manager: ConversationManager
  readonly metrics: Metrics
  readonly streamSlots: StreamSlots
  readonly firstFrameKey: FirstFrameKey
  readonly streamBufferBytes: number
}

/** How long to wait for the frame with the create request, in milliseconds. */
const CREATE_TIMEOUT_MS = 60_000

export const socketRoutes: FastifyPluginAsyncZod<SocketDeps> = async (app, deps) => {
  const { manager, streamSlots, firstFrameKey } = deps

  app.route({
    url: '/conversations/:id/ws',
    ...socketRoute(firstFrameKey, {
      config: { takesTicket: 'stream', outlivesOwner: true },
      schema: { params: ById, querystring: StreamEvents },
      async check({ params, query, request: { remote } }) {
        const { log, clientHooks } = remote ? await remote.glance() : await manager.open(params.id)
        requireSeq(log, query.after_seq)
        if (query.hook_client !== undefined) clientHooks?.requestsTo(query.hook_client)
        streamSlots.take(params.id)() // checks before the upgrade that a slot is free; it is taken afterwards
      },
      serve: (socket, { params, query, request }) => talk(deps, socket, request, { ...query, id: params.id }),
    }),
  })

  app.route({
    url: '/conversations/ws',
    ...socketRoute(firstFrameKey, {
      schema: { querystring: StreamNewConversation },
      check: async () => {},
      async serve(socket, { query, request }) {
        const { create, ...stream } = query
        const access = accessOf(request)
        access.require('read')
        const wish = create === 'frame' ? await firstFrame(socket) : CreateConversation.parse({})
        const { view: createdView, isNew } = await createOrFind(manager, access, createAs(access, wish))
        if (wish.run && isNew) await startFirstRun(await manager.open(createdView.id))
        logCommand(request, { frame: 'create', status: 201, conversation_id: createdView.id })
        await talk(deps, socket, request, { ...stream, id: createdView.id, after_seq: 0, view: createdView })
      },
    }),
  })
}

type Talk = Pick<StreamEvents, 'types' | 'deltas' | 'hook_client' | 'max_text'> & {
  readonly id: string
  readonly after_seq?: number | undefined
  readonly view?: ConversationView
}

/** Sends events and executes commands concurrently. */
async function talk(
  { manager, metrics, streamSlots, streamBufferBytes }: SocketDeps,
  socket: SocketConnection,
  request: FastifyRequest,
  { id, after_seq, types, deltas, hook_client, max_text: maxText, view: createdView }: Talk,
): Promise<void> {
  const leave = streamSlots.take(id)
  const release = manager.hold(id)
  const answering = answerAll(manager, socket, request, id)
  try {
    const { remote } = request
    const { log, state, clientHooks } = remote
      ? await remote.openWithState({ deltas, client: hook_client, signal: socket.signal })
      : await manager.open(id)
    const requests = hook_client === undefined ? undefined : clientHooks.requestsTo(hook_client)
    const afterSeq = after_seq ?? log.head
    const ready = { type: 'ready', conversation_id: id, status: state.status, after_seq: afterSeq }
    await sendFeed(socket, log, {
      ...withoutUndefined({ types, requests, maxText }),
      afterSeq,
      deltas,
      bufferBytes: streamBufferBytes,
      onOpen: () => metrics.streamOpened('websocket'),
      greetings: createdView ? [greetingOf(createdView), ready] : [ready],
      reached: (seq) => ({ type: 'reached', after_seq: seq }),
    })
  } catch (error) {
    await endWithProblem(socket, problemFor(error, request, await manager.redactFor(id)))
  }
  await answering
  release()
  leave()
}

/** Answers commands until the connection closes; never throws. */
async function answerAll(
  manager: ConversationManager,
  socket: SocketConnection,
  request: FastifyRequest,
  id: string,
): Promise<void> {
  const keyedRequest: CommandDeps['keyed'] = (key, route, body) => idempotencyIn(request, key, route, body)
  for await (const text of socket.frames) {
    const redact = await manager.redactFor(id)
    const toProblem = (error: unknown) => problemFor(error, request, redact)
    const answer = await answerCommand(text, {
      access: accessOf(request),
      open: () => manager.open(id),
      remote: request.remote,
      keyed: keyedRequest,
      marksOf: (message, key) => messageMarksOf(request, message, key),
      toProblem,
    })
    const outcome =
      answer.type === 'ack' ? { frame: answer.of, status: 200 } : { frame: undefined, status: PROBLEMS[answer.error] }
    logCommand(request, { ...outcome, conversation_id: id })
    await socket.send(answer)
  }
}

function greetingOf({ id, status, created_at }: ConversationView): ConversationCreatedFrame {
  const about = { status, previous_status: status, reason: 'created' as const }
  return { type: 'StatusUpdate', ...about, conversation_id: id, timestamp: created_at }
}

async function firstFrame(socket: SocketConnection): Promise<CreateConversation> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(noCreate()), CREATE_TIMEOUT_MS)
  try {
    const { value: frame, done } = await Promise.race([socket.frames.next(), late])
    if (done) throw noCreate()
    const { conversation } = parseFrame(CreateFrame, parseJson(frame))
    if (conversation.wait) throw new Problem('invalid_request', WAITS)
    return conversation
  } finally {
    clearTimeout(timer)
  }
}

const WAITS = 'wait: a socket has the events of the run; leave out wait.'

const noCreate = () => new Problem('invalid_request', 'With create=frame the first frame must be of type create.')
