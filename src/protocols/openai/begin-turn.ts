/** Begins a turn for a request: in a new conversation of the profile, in that of an earlier response, or in a fork of it. */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import { ForkConversation } from '../../contract/conversation.ts'
import type { EventType } from '../../contract/events/event.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import { AnswerRequest } from '../../contract/request.ts'
import { decisionOf, hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import type { StoredKind } from '../../contract/requests/request-kinds.ts'
import { isStored } from '../../contract/requests/request-kinds.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { mayCreate, ownKey } from '../../http/guards/limited-requests.ts'
import { createOrFind } from '../../http/guards/create-or-find.ts'
import type { Idempotency } from '../../state/idempotency.ts'
import { mayAnswer } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { createRequestFor, mayNotInstruct } from '../shared/create-request.ts'
import { invalid, parseField, refuseTwice } from '../shared/fields.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { deleteUnused } from '../shared/settle-new.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { toolsUpdate, useTools } from '../shared/use-tools.ts'
import { formatCallId, parseCallId } from './call-id.ts'
import type { AskedModel } from './models.ts'
import { creationOfModel } from './models.ts'
import { OpenAiError } from './openai-error.ts'
import { approvalId } from './response-id.ts'
import type { ResponseInput, ResponseRequest } from './response-request.ts'
import {
  clientToolsOf,
  isUnstored,
  outputSchemaOf,
  readInput,
  runOptionsOf,
  sinceModel,
  toolChoiceOf,
} from './response-request.ts'
import { creationOf, earlierResponse, responseMark, retryOf } from './response-retries.ts'
import { say } from './say.ts'
import { temporaryId } from './temporary-id.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'

/** `start`: seq of the first event of the turn. */
export type BegunTurn = { readonly conversation: Conversation; readonly start: number; readonly isNew: boolean }

/** `end`: seq of the last event of the response; undefined while it is in progress. */
export type Earlier = {
  readonly conversation: Conversation
  readonly end: number | undefined
  /** The request names the conversation, and no response of it. */
  readonly isNamed?: boolean
}

export async function createConversationFor(
  deps: GatewayDeps,
  request: FastifyRequest,
  model: AskedModel,
  body: ResponseRequest,
): Promise<BegunTurn> {
  const input = readInput(body.input, true)
  const { outputs, approvals } = readInput(sinceModel(body.input), false)
  if (outputs.length + approvals.length > 0)
    throw invalid('input', 'answers something that no conversation waits for; send previous_response_id')
  if (input.parts.length === 0) throw invalid('input', 'has no text and no image; send a message')
  const access = accessOf(request)
  const { instructions, metadata } = body
  const fields = { ...creationOfModel(model), tools: clientToolsOf(body), metadata }
  const shape = shapeOf(access, body)
  const content =
    instructions && mayNotInstruct(access)
      ? [{ type: 'text' as const, text: instructions }, ...input.parts]
      : input.parts
  parseField(UserInput, { role: 'user', content }, 'input')
  const retry = retryOf(request)
  const wish = await createRequestFor(deps, access, fields)
  const idempotency = ownKey(access, creationOf(retry))
  const id = unstoredId(request, body)
  const { view } = await createOrFind(
    deps.manager,
    access,
    { ...wish, ...(id !== undefined && { id }) },
    { idempotency },
  )
  request.conversationId = view.id
  const release = beginAlone(view.id)
  if (!release) throw busy()
  try {
    const conversation = await deps.manager.open(view.id)
    const start = await earlierResponse(conversation, retry)
    if (start !== undefined) return { conversation, start, isNew: false }
    const words = { content, tools: fields.tools, ...shape, mark: responseMark(retry) }
    const saying = say(conversation, access, { ...words, answers: [] })
    return { conversation, start: await saying.catch(orDelete(deps, conversation)), isNew: true }
  } finally {
    release()
  }
}

/** What the answer has to be. Throws a `Problem`. */
const shapeOf = (access: Access, body: ResponseRequest) => ({
  outputSchema: outputSchemaOf(body),
  toolChoice: toolChoiceOf(body),
  runOptions: runOptionsOf(access, body),
})

/** The id says that the conversation goes with its answer. */
const unstoredId = ({ server }: FastifyRequest, body: ResponseRequest): string | undefined =>
  isUnstored(body) ? temporaryId(server.hashBody, 'response') : undefined

/** Throws an `OpenAiError` if the conversation is busy, or waits for something that the request does not answer. */
export async function continueConversation(
  deps: GatewayDeps,
  request: FastifyRequest,
  { conversation: earlier, end, isNamed = false }: Earlier,
  body: ResponseRequest,
): Promise<BegunTurn> {
  const access = accessOf(request)
  const release = beginAlone(earlier.id)
  if (!release) throw busy()
  try {
    const retry = retryOf(request)
    request.conversationId = earlier.id
    const start = await earlierResponse(earlier, retry)
    const isOther = start !== undefined && isNamed && retry.key === undefined && (await hasEnded(earlier, start))
    if (start !== undefined && !isOther) return { conversation: earlier, start, isNew: false }
    if (end === undefined) throw busy()
    const input = readInput(body.input, false)
    // Somebody else may have answered what waited: the same turn then continues.
    const hasMore = !isNamed && (await isContinuedAfter(earlier, end, ['UserMessage']))
    const id = unstoredId(request, body)
    const fork = hasMore ? await forkAt(deps, access, earlier, { at_seq: end, id }, creationOf(retry)) : undefined
    request.conversationId = fork?.id ?? earlier.id
    const forkStart = fork && (await earlierResponse(fork, retry))
    if (fork && forkStart !== undefined) return { conversation: fork, start: forkStart, isNew: false }
    const continuation = { body, input, isNew: hasMore, mark: responseMark(retry) }
    const continuing = continueIn(fork ?? earlier, access, continuation)
    return await (fork ? continuing.catch(orDelete(deps, fork)) : continuing)
  } finally {
    release()
  }
}

/** Clients repeat a request without a key, whose answer was lost, for so long. Later the same words are said again. */
const REPEATED_MS = 60_000

/** True if the turn of this message ended long ago, or another message came after it: the same words are not the same request. */
async function hasEnded(conversation: Conversation, start: number): Promise<boolean> {
  if (await isContinuedAfter(conversation, start, ['UserMessage'])) return true
  return isAtRest(conversation) && Date.now() - Date.parse(conversation.state.updatedAt) > REPEATED_MS
}

/** Deletes a conversation that the request has made, unless somebody uses it: a repeated request begins again. */
const orDelete =
  ({ manager }: GatewayDeps, conversation: Conversation) =>
  async (error: unknown): Promise<never> => {
    await deleteUnused(manager, conversation, { freesKey: true })
    throw error
  }

type Continuation = {
  readonly body: ResponseRequest
  readonly input: ResponseInput
  readonly isNew: boolean
  readonly mark: Idempotency
}

/** All that can be refused is refused before anything changes. */
async function continueIn(
  conversation: Conversation,
  access: Access,
  { body, input, isNew, mark }: Continuation,
): Promise<BegunTurn> {
  const refuse = () => {
    if (conversation.state.status === 'running' && waitingIn(conversation).length === 0) throw busy()
  }
  refuse()
  const tools = clientToolsOf(body)
  const answers = answersTo(conversation, input)
  if (answers.length === 0 && input.parts.length === 0) throw invalid('input', 'has no text, no image and no answer')
  mayAnswer(access, answers)
  if (input.parts.length > 0) parseField(UserInput, { role: 'user', content: input.parts }, 'input')
  toolsUpdate(conversation, access, tools)
  const shape = shapeOf(access, body)
  const prepare = async () => {
    refuse()
    await useTools(conversation, access, tools)
  }
  const words = { answers, content: input.parts, tools, ...shape, mark, prepare }
  return { conversation, start: await say(conversation, access, words), isNew }
}

/** Whether somebody has continued the conversation after this event. */
export async function isContinuedAfter({ log }: Conversation, end: number, by: readonly EventType[]): Promise<boolean> {
  return (await log.read({ afterSeq: end, types: new Set(by), limit: 1 })).events.length > 0
}

async function forkAt(
  { manager }: GatewayDeps,
  access: Access,
  { id }: Conversation,
  { at_seq, id: newId }: Pick<ForkConversation, 'at_seq' | 'id'>,
  idempotency: Idempotency | undefined,
): Promise<Conversation> {
  mayCreate(access)
  const fork = await manager.fork(id, { ...ForkConversation.parse({ at_seq }), id: newId }, ownKey(access, idempotency))
  return await manager.open(fork.id)
}

/** Clients that name the conversation may send the id of a call as the log has it. An id that names another one is of no call here. */
function toolUseIdIn(conversationId: string, callId: string): string | undefined {
  const call = parseCallId(callId)
  if (!call) return callId
  return call.conversationId === conversationId ? call.toolUseId : undefined
}

type Waiting = OpenRequestOf<StoredKind>

/** What the next message does not close. Hooks are not for clients of this protocol. */
const waitingIn = (conversation: Conversation): Waiting[] =>
  conversation.requests
    .list()
    .filter((request): request is Waiting => isStored(request.kind))
    .filter((request) => !hasForm(request, 'questions') || questionForm(request.kind).unanswered !== undefined)

/** Answers everything that waits, or nothing: a call is never decided because it is not named. */
function answersTo(conversation: Conversation, input: ResponseInput): readonly GivenAnswer[] {
  const { id: conversationId } = conversation
  const open = waitingIn(conversation)
  const answers = open.map((request) => ({
    requestId: request.request_id,
    answer: answerTo(conversationId, request, input),
  }))
  const approvalIds = new Set(
    open.flatMap(({ request_id: requestId, tool_use_ids }) =>
      tool_use_ids.map((toolUseId) => approvalId({ conversationId, requestId, toolUseId })),
    ),
  )
  for (const { id } of input.approvals)
    if (!approvalIds.has(id)) throw invalid('approval_request_id', `${id.slice(0, 200)} does not wait for an answer`)
  refuseTwice(
    'approval_request_id',
    input.approvals.map(({ id }) => id),
  )
  const outputIds = input.outputs.map(({ callId }) => toolUseIdIn(conversationId, callId))
  const calls = new Set(open.flatMap(({ tool_use_ids }) => tool_use_ids))
  for (const [at, { callId }] of input.outputs.entries())
    if (!calls.has(outputIds[at] ?? '')) throw invalid('call_id', `${callId.slice(0, 200)} does not wait for an output`)
  refuseTwice(
    'call_id',
    outputIds.filter((id) => id !== undefined),
  )
  return answers
}

function answerTo(
  conversationId: string,
  request: Waiting,
  { parts, approvals, outputs }: ResponseInput,
): AnswerRequest {
  if (hasForm(request, 'questions')) {
    const { noun, unanswered } = questionForm(request.kind)
    if (parts.length === 0 || !unanswered) throw stillWaits(`${noun} waits. Send a message, which declines it.`)
    return { kind: request.kind, ...unanswered }
  }
  if (hasForm(request, 'decision'))
    throw stillWaits(
      `The agent waits for a decision about ${decisionOf(request).noun}. Decide with the API of the server.`,
    )
  if (request.kind === 'client_tool') {
    const [id = ''] = request.tool_use_ids
    const answer = outputs.find(({ callId }) => toolUseIdIn(conversationId, callId) === id)
    const callId = formatCallId({ conversationId, toolUseId: id })
    if (!answer) throw new OpenAiError(400, `No tool output found for function call ${callId}.`, { param: 'input' })
    return parseField(AnswerRequest, { kind: 'client_tool', output: answer.output })
  }
  const waitingCalls = request.payload.tool_uses.filter(({ decision }) => decision === undefined)
  const decisions = waitingCalls.map(({ tool_use_id, input_hash }) => {
    const wantedId = approvalId({ conversationId, requestId: request.request_id, toolUseId: tool_use_id })
    const answer = approvals.find(({ id }) => id === wantedId)
    if (!answer)
      throw stillWaits(
        'Tool calls wait for a decision. Send an mcp_approval_response for each of them, or cancel the response.',
      )
    const message = answer.reason
    return answer.approve
      ? { tool_use_id, input_hash, behavior: 'allow' as const }
      : { tool_use_id, input_hash, behavior: 'deny' as const, ...(message !== undefined && { message }) }
  })
  return parseField(AnswerRequest, { kind: 'permission', decisions })
}

const stillWaits = (message: string) => new OpenAiError(409, message, { code: 'waiting_for_decision', param: 'input' })

export const busy = (): OpenAiError =>
  new OpenAiError(409, 'The conversation is busy with a response. Wait for its end, or cancel it.', {
    code: 'conversation_running',
    retryAfter: 1,
  })
