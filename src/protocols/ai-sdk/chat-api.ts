/** What the routes of the UI message stream do, in one module, which is loaded when it is used. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Conversation } from '../../conversations/conversation.ts'
import { otherProfile } from '../../http/guards/create-or-find.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { createRequestFor } from '../shared/create-request.ts'
import { openTentative, settleNew } from '../shared/settle-new.ts'
import { enterStream } from '../shared/enter-stream.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { stepsOfAnswer } from '../shared/steps-of-answer.ts'
import { streamResponse } from '../shared/stream-response.ts'
import type { BegunAnswer } from './answer-requests.ts'
import { beginAnswer } from './begin-answer.ts'
import { ChunkBuilder } from './chunk-builder.ts'
import { clientToolsFrom } from './client-tools-in.ts'
import { findChat, requireChat } from './find-chat.ts'
import { profileOfThread } from '../shared/find-thread.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { readHistory } from './read-history.ts'
import { openTurn } from './turn-marks.ts'
import type { UiChatRequest } from './ui-request.ts'
import { parseUiChat, readUiInput } from './ui-request.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

export { chatInRequest } from './find-chat.ts'

/** The error handler of the routes. Clients show the body, so it is the sentence that says what to do. */
export function sendUiError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  const problem = problemFor(error, request, redact)
  const { status, message: body } = problem
  return sendErrorReply(reply, { status, retryAfter: retryAfterOf(problem), type: 'text/plain; charset=utf-8', body })
}

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

const PROFILE = 'default'

export async function submitChat(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const body = parseUiChat(request.body)
  const access = accessOf(request)
  const input = readUiInput(body)
  // Nothing waits in a chat that nobody has begun.
  const { conversation, isNew } = await (input
    ? findOrCreateChat(deps, request, body)
    : { conversation: await requireChat(deps, request, body.id), isNew: false })
  let hasBegun = false
  try {
    await sendAnswer(deps, conversation, { request, reply }, async () => {
      const begunAnswer = await beginAnswer(conversation, { body, input, access, hashBody: request.server.hashBody })
      hasBegun = true
      return begunAnswer
    })
  } finally {
    if (isNew) await settleNew(deps, conversation, { hasBegun })
  }
}

/** Resolves to a reply without content if the agent does not work. */
export async function resumeChat(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const conversation = await findChat(deps, request)
  const start = conversation && !isAtRest(conversation) ? await openTurn(conversation) : undefined
  if (!conversation || start === undefined) return reply.code(204).send()
  return await sendAnswer(deps, conversation, { request, reply }, async () => {
    return { start, shownThrough: 0, isNew: false }
  })
}

export async function stopChat(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const conversation = await requireChat(deps, request)
  return { status: await conversation.pause({ interrupt: true }) }
}

/** A chat that nobody has begun has no messages. */
export async function listMessages(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const conversation = await findChat(deps, request)
  return conversation ? await readHistory(conversation) : []
}

async function findOrCreateChat(
  deps: GatewayDeps,
  request: FastifyRequest,
  { id, profile, client_tools: tools }: UiChatRequest,
): Promise<{ readonly conversation: Conversation; readonly isNew: boolean }> {
  const foundConversation = await findChat(deps, request, id)
  const isMeant = foundConversation && (!profile || profileOfThread(foundConversation) === profile)
  if (isMeant) return { conversation: foundConversation, isNew: false }
  if (foundConversation) throw otherProfile()
  const access = accessOf(request)
  const fields = { profile: profile ?? PROFILE, tools: tools ?? [], metadata: undefined, instructions: undefined }
  const wish = await createRequestFor(deps, access, { ...fields, externalId: id })
  const tentativeChat = await openTentative(deps, access, wish)
  request.conversationId = tentativeChat.conversation.id
  return tentativeChat
}

/** The stream is one of those of its conversation. A lost connection ends it alone. */
async function sendAnswer(
  deps: GatewayDeps,
  conversation: Conversation,
  exchange: Exchange,
  begin: () => Promise<BegunAnswer>,
): Promise<void> {
  const release = deps.manager.hold(conversation.id)
  try {
    const leave = enterStream(deps, conversation.id)
    try {
      await streamAnswer(conversation, exchange, await begin())
    } finally {
      leave()
    }
  } finally {
    release()
  }
}

async function streamAnswer(
  conversation: Conversation,
  { request, reply }: Exchange,
  { start, shownThrough, isNew }: BegunAnswer,
): Promise<void> {
  const signal = closeSignal(reply)
  const place = { conversationId: conversation.id, start }
  const builder = new ChunkBuilder(place, { clientToolsAt: await clientToolsFrom(conversation, start) })
  void reply.header('x-vercel-ai-ui-message-stream', 'v1')
  await streamResponse(
    { request, reply, signal },
    async function* () {
      yield builder.begin().map((chunk) => JSON.stringify(chunk))
      for await (const step of stepsOfAnswer(conversation, start, signal, isNew)) {
        const chunks = builder.add(step)
        const isIdle = !step.change && !step.event
        if (isIdle) yield []
        else if (chunks.length > 0 && (step.seq ?? Infinity) > shownThrough)
          yield chunks.map((chunk) => JSON.stringify(chunk))
      }
      if (signal.aborted) return
      yield [...builder.end().map((chunk) => JSON.stringify(chunk)), '[DONE]']
    },
    (error) => {
      const { message: errorText } = problemFor(error, request, conversation.redact)
      return JSON.stringify({ type: 'error', errorText })
    },
  )
}
