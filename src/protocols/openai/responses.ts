/** The operations of the Responses API. Every answer is rebuilt from the log: the gateway keeps no state. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import { faultOfSchema } from '../../agent/output/output-schema.ts'
import type { EventType } from '../../contract/events/event.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import { followTurn, readTurn } from '../items/follow-turn.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { beginByInput } from './begin-by-input.ts'
import { continueConversation, isContinuedAfter } from './begin-turn.ts'
import type { AskedModel } from './models.ts'
import { refuseOther, requireModel } from './models.ts'
import { continueNamed, namedIn } from './named-conversation-turn.ts'
import { OpenAiError, UNKNOWN_MODEL, errorObject, unknownModel } from './openai-error.ts'
import { invalid } from '../shared/fields.ts'
import { ResponseBuilder } from './response-builder.ts'
import type { ResponseEvent } from './response-builder.ts'
import type { ResponseId } from './response-id.ts'
import { formatResponseId, parseResponseId } from './response-id.ts'
import { enterStream } from '../shared/enter-stream.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { deleteAtEnd } from './leftovers.ts'
import { isTemporaryId } from './temporary-id.ts'
import { inputItems } from './input-items.ts'
import { responseObject } from './response-object.ts'
import type { Echo, ResponseObject } from './response-object.ts'
import type { ResponseRequest } from './response-request.ts'
import { asksApproval, isUnstored, outputSchemaOf, parseResponseRequest } from './response-request.ts'
import { streamResponse } from '../shared/stream-response.ts'
import { deleteIf } from '../shared/delete-if.ts'

/** A response and its conversation. */
type FoundResponse = { readonly id: ResponseId; readonly conversation: Conversation }

export async function createResponse(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ResponseObject | undefined> {
  const body = parseResponseRequest(request.body)
  const access = accessOf(request)
  const model = await requireModel(deps, access, body.model)
  const schema = outputSchemaOf(body)
  const fault = schema && (await faultOfSchema(schema))
  if (fault !== undefined) throw invalid('text.format', `the schema ${fault}`)
  const isBackground = body.background === true
  const flags = { asksApproval: asksApproval(body), isBackground, isStructured: schema !== undefined }
  const { previous_response_id: previous } = body
  request.conversationId = previous ? parseResponseId(previous)?.conversationId : undefined
  const name = namedIn(body)
  const turn =
    name !== undefined
      ? await continueNamed(deps, request, { name, model, body })
      : previous
        ? await continueConversation(deps, request, await beforeOf(deps, access, previous, model), body)
        : await beginByInput(deps, request, model, body)
  const { conversation, start } = turn
  const before = previous ? parseResponseId(previous) : undefined
  const isOfConversation =
    name !== undefined || (before?.isOfConversation === true && before.conversationId === conversation.id)
  const response = { conversation, id: { conversationId: conversation.id, start, ...flags, isOfConversation } }
  const release = deps.manager.hold(conversation.id)
  // A client that sends all items each time continues what it did not want to be stored.
  const isAnswered =
    !previous && name === undefined && isTemporaryId(conversation.id, request.server.hashBody, 'response')
  const ending = { ...response, knownThrough: turn.isNew ? undefined : conversation.log.head }
  let isDecided = !isUnstored(body) || !(turn.isNew || isAnswered)
  try {
    const answer = await answerWith(deps, response, body, { request, reply })
    if (isDecided || answer === undefined || answer.status === 'in_progress') return answer
    isDecided = true
    await deleteAtEnd(deps, ending, request)
    return answer
  } finally {
    // Otherwise the client has left, and the agent still works.
    if (isDecided) release()
    else void deleteAtEnd(deps, ending, request).finally(release)
  }
}

/** Resolves to undefined if the answer was streamed, and the client has left. */
async function answerWith(
  deps: GatewayDeps,
  response: FoundResponse,
  body: ResponseRequest,
  { request, reply }: Pick<ResponseStream, 'request' | 'reply'>,
): Promise<ResponseObject | undefined> {
  const echo = { ...body, previous_response_id: body.previous_response_id ?? null }
  if (body.stream) return await stream(deps, response, echo, { request, reply, after: -1 })
  if (body.background) return await snapshot(response, echo)
  const signal = closeSignal(reply)
  const builder = new ResponseBuilder(response.id)
  for await (const step of followTurn(response.conversation.log, response.id.start, signal)) eventsOf(builder, step)
  accessOf(request).requireValid()
  if (builder.end?.error?.code === UNKNOWN_MODEL && builder.output.length === 0)
    throw unknownModel(builder.end.error.message)
  return await objectOf(response, builder, echo)
}

/** Sends, with `stream`, the events after `starting_after`; without it, the response as it is now. */
export async function getResponse(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ResponseObject | undefined> {
  const response = await find(deps, accessOf(request), idIn(request))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed below
  const { stream: wantsStream, starting_after: after = '-1' } = request.query as Record<string, string | undefined>
  if (wantsStream !== 'true') return await snapshot(response, {})
  if (!/^(-1|\d{1,16})$/.test(after)) throw invalid('starting_after', 'must be a sequence_number of this response')
  const release = deps.manager.hold(response.conversation.id)
  try {
    await stream(deps, response, {}, { request, reply, after: Number(after) })
    return undefined
  } finally {
    release()
  }
}

/** Changes nothing if the response has ended. */
export async function cancelResponse(deps: GatewayDeps, request: FastifyRequest): Promise<ResponseObject> {
  const response = await find(deps, accessOf(request), idIn(request))
  const before = await snapshot(response, {})
  if (before.status === 'in_progress') {
    await response.conversation.pause({ interrupt: true })
    return await snapshot(response, {})
  }
  const { conversation } = response
  if (await isLatest(response)) await endWaiting(conversation)
  return before
}

/** Calls that wait for a decision or a result are cancelled, too. */
async function endWaiting(conversation: Conversation): Promise<void> {
  if (conversation.requests.list().length > 0) await conversation.pause({ interrupt: true })
}

/** Deletes the conversation, if nothing came after the response: others would be lost with it. */
export async function deleteResponse(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const response = await find(deps, accessOf(request), idIn(request))
  if (response.id.isOfConversation)
    throw isUsed('The response is a part of its conversation. Delete the conversation instead.')
  await deleteIf(deps.manager, response.conversation, async () => {
    if (await isLatest(response)) return true
    throw isUsed('The conversation was continued after this response. Delete its newest response instead.')
  })
  return { id: idIn(request), object: 'response', deleted: true }
}

const isUsed = (message: string) => new OpenAiError(409, message, { code: 'response_is_used' })

export async function listInputItems(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const { conversation, id } = await find(deps, accessOf(request), idIn(request))
  const data = await inputItems(conversation.log, id.start)
  return { object: 'list', data, first_id: data.at(0)?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: false }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a parameter of each of these routes
const idIn = ({ params }: FastifyRequest): string => (params as { response_id: string }).response_id

async function find(deps: GatewayDeps, access: Access, text: string): Promise<FoundResponse> {
  const response = await findSeen(deps, access, text)
  if (response) return response
  throw new OpenAiError(404, `There is no response ${text.slice(0, 100)}.`, { code: 'not_found', param: 'response_id' })
}

/** A response of a conversation that the key does not see is as one that does not exist. */
async function findSeen({ manager }: GatewayDeps, access: Access, text: string): Promise<FoundResponse | undefined> {
  const id = parseResponseId(text)
  if (!id) return undefined
  await manager.upToDate()
  const owner = manager.ownerOf(id.conversationId)
  if (!owner || !access.sees(owner)) return undefined
  const conversation = await manager.open(id.conversationId)
  return (await beginsTurn(conversation, id.start)) ? { id, conversation } : undefined
}

/** A response begins with a message, or with an answer to what waited. */
async function beginsTurn({ log }: Conversation, seq: number): Promise<boolean> {
  const page = await log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })
  const [first] = page.events
  return first !== undefined && BEGINNINGS.has(first.event.type)
}

const BEGINNINGS: ReadonlySet<EventType> = new Set(['UserMessage', 'RequestAnswered'])

/** The response that a request continues, and the last event of it. */
async function beforeOf(deps: GatewayDeps, access: Access, text: string, model: AskedModel) {
  const response = await findSeen(deps, access, text)
  const missing = { code: 'previous_response_not_found', param: 'previous_response_id' }
  if (!response) throw new OpenAiError(404, `There is no response ${text.slice(0, 100)}.`, missing)
  // Nothing of a profile, such as its tools, answers for a plain model.
  if (model.isPlain) refuseOther(response.conversation, model)
  return { ...response, end: await endOf(response) }
}

/** The seq of the last event of an ended response; undefined while it is in progress. */
async function endOf({ conversation, id }: FoundResponse): Promise<number | undefined> {
  for await (const { change, isOfBefore, seq } of readTurn(conversation.log, id.start))
    if (!isOfBefore && (change?.type === 'ended' || change?.type === 'rests')) return seq
  return undefined
}

async function isLatest(response: FoundResponse): Promise<boolean> {
  const end = await endOf(response)
  return end === undefined || !(await isContinuedAfter(response.conversation, end, ['UserMessage', 'RequestAnswered']))
}

async function snapshot(response: FoundResponse, echo: Echo): Promise<ResponseObject> {
  const builder = new ResponseBuilder(response.id)
  for await (const step of readTurn(response.conversation.log, response.id.start)) eventsOf(builder, step)
  return await objectOf(response, builder, echo)
}

const objectOf = ({ conversation, id }: FoundResponse, builder: ResponseBuilder, echo: Echo): Promise<ResponseObject> =>
  responseObject({ id: formatResponseId(id), responseId: id, conversation, builder, echo })

function eventsOf(
  builder: ResponseBuilder,
  { change, event, isOfBefore }: TurnStep,
  after = -1,
): readonly ResponseEvent[] {
  if (event?.type === 'AssistantMessage' && !isOfBefore) builder.count(event.usage)
  if (!change) return []
  if (!isOfBefore) return builder.add(change, after)
  builder.recall(change)
  return []
}

const newsIn = <T>(events: readonly T[]): (readonly T[])[] => (events.length > 0 ? [events] : [])

type ResponseStream = { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly after: number }

/** It takes the place of one stream of the conversation. */
async function stream(
  deps: GatewayDeps,
  response: FoundResponse,
  echo: Echo,
  place: ResponseStream,
): Promise<ResponseObject | undefined> {
  const leave = enterStream(deps, response.conversation.id)
  try {
    return await sendStream(response, echo, place)
  } finally {
    leave()
  }
}

async function sendStream(
  foundResponse: FoundResponse,
  echo: Echo,
  { request, reply, after }: ResponseStream,
): Promise<ResponseObject | undefined> {
  const signal = closeSignal(reply)
  const builder = new ResponseBuilder(foundResponse.id)
  const firstObject = await objectOf(foundResponse, builder, echo)
  return await streamResponse(
    { request, reply, signal },
    async function* () {
      const heads = ['response.created', 'response.in_progress'].map((type, at) => ({
        type,
        response: firstObject,
        sequence_number: at,
      }))
      yield heads.filter((event) => event.sequence_number > after)
      for await (const step of followTurn(foundResponse.conversation.log, foundResponse.id.start, signal))
        if (step.change || step.event) yield* newsIn(eventsOf(builder, step, after))
        else yield []
      if (signal.aborted) return undefined
      const response = await objectOf(foundResponse, builder, echo)
      const type = response.status === 'cancelled' ? 'incomplete' : response.status
      yield [{ type: `response.${type}`, response, sequence_number: builder.lastNumber + 1 }]
      return response
    },
    (error) => {
      const { error: errorBody } = errorObject(error, request, foundResponse.conversation.redact)
      return { ...errorBody, type: 'error', sequence_number: Number.MAX_SAFE_INTEGER }
    },
  )
}
