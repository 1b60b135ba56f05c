/** `POST /v1/chat/completions`: the answer of one turn, whole or as a stream. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { faultOfSchema } from '../../agent/output/output-schema.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { parseCallId } from './call-id.ts'
import { ChatBuilder } from './chat-builder.ts'
import { chatSchemaOf, parseChat, readMessages } from './chat-request.ts'
import type { ChatPost } from './chat-post.ts'
import { retryHeadersOf } from './earlier-post.ts'
import { threadId } from './chat-thread.ts'
import type { ChatPlace, ChatTurn } from './chat-turn.ts'
import { beginChat, placeFor } from './chat-turn.ts'
import { settleNew } from '../shared/settle-new.ts'
import { enterStream } from '../shared/enter-stream.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { requireModel } from './models.ts'
import { errorObject } from './openai-error.ts'
import { invalid } from '../shared/fields.ts'
import { clientToolsOf } from './response-request.ts'
import { stepsOfAnswer } from '../shared/steps-of-answer.ts'
import { streamResponse } from '../shared/stream-response.ts'

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly signal: AbortSignal }

/** Resolves to undefined if the answer was streamed. */
export async function createChatCompletion(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<object | undefined> {
  const chatPost = chatPostOf(request)
  const model = await requireModel(deps, chatPost.access, chatPost.body.model)
  const fault = chatPost.outputSchema && (await faultOfSchema(chatPost.outputSchema))
  if (fault !== undefined) throw invalid('response_format', `the schema ${fault}`)
  const exchange = { request, reply, signal: closeSignal(reply) }
  const place = await placeFor(deps, chatPost, model)
  const { conversation } = place
  request.conversationId = conversation.id
  const leaveTemporary = enterTemporary(conversation.id)
  const release = deps.manager.hold(conversation.id)
  let leave: (() => void) | undefined
  let turn: ChatTurn | undefined
  let builder: ChatBuilder | undefined
  try {
    // At the limit of streams it throws.
    leave = chatPost.body.stream ? enterStream(deps, conversation.id) : undefined
    turn = await beginChat(chatPost, place)
    builder = builderFor(turn, chatPost)
    const send = chatPost.body.stream ? stream : answer
    return await send(turn, builder, chatPost, exchange)
  } finally {
    leave?.()
    release()
    // It was made for a request that was refused.
    if (place.isNew && !place.isTemporary) await settleNew(deps, conversation, { hasBegun: turn !== undefined })
    // A repeated request follows the same turn.
    if (leaveTemporary(isOver(place, { turn, builder, signal: exchange.signal })))
      await deps.manager.delete(conversation.id).catch((error: unknown) => {
        request.log.error({ err: error }, 'the conversation of a request without a thread could not be deleted')
      })
  }
}

/** The conversation that a request continues; undefined if it makes one. */
export async function conversationOfChat(deps: GatewayDeps, request: FastifyRequest): Promise<string | undefined> {
  const chatPost = chatPostOf(request)
  const [first] = chatPost.messages.outputs
  return first ? parseCallId(first.callId)?.conversationId : await threadId(deps, chatPost)
}

function chatPostOf(request: FastifyRequest): ChatPost {
  const body = parseChat(request.body)
  const { headers } = request
  return {
    body,
    messages: readMessages(body),
    tools: clientToolsOf({ tools: body.tools }),
    outputSchema: chatSchemaOf(body),
    thread: threadIn(headers),
    access: accessOf(request),
    hashBody: request.server.hashBody,
    ...retryHeadersOf(request),
  }
}

/** Headers of other servers and of Open WebUI, so that their users need no setting. */
const THREAD_HEADERS = ['x-conversation-id', 'x-openhands-serverconversation-id', 'x-openwebui-chat-id']

/** An empty header has no id. */
function threadIn(headers: FastifyRequest['headers']): string | undefined {
  const name = THREAD_HEADERS.find((each) => headers[each] !== undefined && headers[each] !== '')
  const id = name && headers[name]
  if (id === undefined) return undefined
  if (typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id)) return id
  throw invalid(name ?? '', 'must have 1 to 200 visible ASCII characters')
}

type End = {
  readonly turn: ChatTurn | undefined
  readonly builder: ChatBuilder | undefined
  readonly signal: AbortSignal
}

/** Nobody can reach a temporary conversation again, unless the client has been asked for the result of a function. */
function isOver({ isTemporary, isNew }: ChatPlace, { turn, builder, signal }: End): boolean {
  if (!isTemporary) return false
  if (!turn) return isNew
  return signal.aborted || builder?.finish !== 'tool_calls'
}

function builderFor({ conversation, isTemporary }: ChatTurn, { tools, outputSchema }: ChatPost): ChatBuilder {
  return new ChatBuilder({
    conversationId: conversation.id,
    isTemporary,
    isStructured: outputSchema !== undefined,
    functions: new Set(tools.map(({ name }) => name)),
  })
}

async function answer(
  turn: ChatTurn,
  builder: ChatBuilder,
  { body }: ChatPost,
  { request, reply, signal }: Exchange,
): Promise<object> {
  const { conversation, start } = turn
  for await (const step of stepsOf(turn, builder, signal)) builder.addStep(step)
  accessOf(request).requireValid()
  // A repeated request would be another run.
  if (builder.failure) {
    void reply.header('x-should-retry', 'false')
    throw builder.failure
  }
  const { content, reasoning, calls, finish } = builder
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const head = headOf(conversation.id, start, body.model)
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish ?? 'stop' }]
  return { ...head, object: 'chat.completion', choices, usage: usageOf(builder) }
}

const headOf = (conversationId: string, start: number, model: string) => ({
  id: `chatcmpl-${conversationId.replaceAll('-', '')}_${start}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

async function stream(
  turn: ChatTurn,
  builder: ChatBuilder,
  { body }: ChatPost,
  exchange: Exchange,
): Promise<undefined> {
  const { conversation, start } = turn
  const withUsage = body.stream_options?.include_usage === true
  const head = { ...headOf(conversation.id, start, body.model), object: 'chat.completion.chunk' }
  const chunk = (delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }]
    return { ...head, choices, ...(withUsage && { usage: null }) }
  }
  await streamResponse(
    exchange,
    async function* () {
      yield [chunk({ role: 'assistant', content: '' })]
      for await (const step of stepsOf(turn, builder, exchange.signal)) {
        const deltas = builder.addStep(step)
        if (deltas.length > 0) yield deltas.map((delta) => chunk(delta))
        else if (!step.change && !step.event) yield []
      }
      if (exchange.signal.aborted) return
      if (builder.failure) throw builder.failure
      yield [chunk({}, builder.finish ?? 'stop')]
      if (withUsage) yield [{ ...head, choices: [], usage: usageOf(builder) }]
      yield ['[DONE]']
    },
    (error) => ({ error: errorObject(error, exchange.request, conversation.redact).error }),
  )
}

/**
 * A request that is repeated gets what the agent has said since somebody decided, up to the next message. The client itself continues
 * after a call of its functions.
 */
async function* stepsOf(
  { conversation, start, isNew }: ChatTurn,
  builder: ChatBuilder,
  signal: AbortSignal,
): AsyncGenerator<TurnStep, void, void> {
  let rests = false
  for await (const step of stepsOfAnswer(conversation, start, signal, isNew)) {
    const { change, event, isOfBefore } = step
    const isSuperseded = change?.type === 'ended' && change.result.stop_reason === 'superseded'
    if (!isNew && (isSuperseded || (rests && event?.type === 'UserMessage'))) return
    yield step
    if (change && !isOfBefore) rests = change.type === 'rests'
    if (rests && builder.calls.length > 0) return
  }
}

function usageOf({ usage }: ChatBuilder): object {
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    prompt_tokens_details: { cached_tokens },
    completion_tokens_details: { reasoning_tokens },
  }
}

/** The requests that use each conversation which goes with its answer: the last of them ends it. */
type Use = { count: number; isOver: boolean }

const uses = new Map<string, Use>()

/** Returns what to call once at the end of the request: with true if the conversation is over. It returns true if nobody uses it any more. */
function enterTemporary(id: string): (isOver: boolean) => boolean {
  const use = uses.get(id) ?? { count: 0, isOver: false }
  uses.set(id, use)
  use.count++
  return (isOver) => {
    use.isOver ||= isOver
    if (--use.count > 0) return false
    uses.delete(id)
    return use.isOver
  }
}
