/** Begins the turn that a request of the Chat Completions API asks for: in its thread, or in its own conversation. */
import { Problem } from '../../contract/problem.ts'
import type { RewindRequest } from '../../contract/rewind.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { REQUESTS } from '../../contract/requests/request-kinds.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { RewindOptions } from '../../conversations/rewind.ts'
import { configureAndRewind } from '../shared/configure-and-rewind.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { toolsUpdate } from '../shared/use-tools.ts'
import { busy } from './begin-turn.ts'
import { parseCallId } from './call-id.ts'
import type { ChatPost } from './chat-post.ts'
import { createRequestFor, mayNotInstruct } from '../shared/create-request.ts'
import type { Results } from './chat-retries.ts'
import { earlierMessageOf, missingResult, notWaiting, resultsOf, toolUseOf } from './chat-retries.ts'
import { importOf } from '../shared/earlier-messages.ts'
import type { ChatMarks, HistoryPlace } from './chat-history.ts'
import { formatMark, marksOf, placeOf } from './chat-history.ts'
import type { ChatMessages } from './chat-request.ts'
import { runOptionsWith, toolChoiceOf } from './response-request.ts'
import { waitingWords } from './chat-words.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import type { AskedModel } from './models.ts'
import { creationOfModel, isOfModel } from './models.ts'
import { OpenAiError } from './openai-error.ts'
import { parseField } from '../shared/fields.ts'
import { say } from './say.ts'
import { isTemporaryId, temporaryId } from './temporary-id.ts'
import { limitedThread } from './chat-thread.ts'
import { openTentative } from '../shared/settle-new.ts'

/** `start`: seq of the first event of the turn. */
export type ChatTurn = {
  readonly conversation: Conversation
  readonly start: number
  readonly isTemporary: boolean
  /** False: the request has begun it before. */
  readonly isNew: boolean
}

/** Says where a turn begins; `isTemporary`: it goes with its answer. `isNew`: made for this request. */
export type ChatPlace = {
  readonly conversation: Conversation
  readonly isTemporary: boolean
  readonly isNew: boolean
}

/** Throws an `OpenAiError` for results that nothing waits for. */
export async function placeFor(deps: GatewayDeps, chatPost: ChatPost, model: AskedModel): Promise<ChatPlace> {
  const { messages, thread, access, hashBody } = chatPost
  const [first] = messages.outputs
  if (!first) return await threadFor(deps, chatPost, model)
  const { conversationId } = parseCallId(first.callId) ?? {}
  await deps.manager.upToDate()
  const owner = conversationId === undefined ? undefined : deps.manager.ownerOf(conversationId)
  if (conversationId === undefined || !owner || !access.sees(owner)) throw notWaiting(first.callId)
  const conversation = await deps.manager.open(conversationId)
  const { external_id } = conversation.state.settings
  if (!isOfModel(conversation, model) || (thread !== undefined && external_id !== thread))
    throw notWaiting(first.callId)
  return { conversation, isTemporary: isTemporaryId(conversationId, hashBody, 'chat'), isNew: false }
}

async function threadFor(deps: GatewayDeps, chatPost: ChatPost, model: AskedModel): Promise<ChatPlace> {
  const { body, thread, access, tools, hashBody } = chatPost
  const conversation = await limitedThread(deps, chatPost, model)
  if (conversation) return { conversation, isTemporary: false, isNew: false }
  const request = await createRequestFor(deps, access, {
    ...creationOfModel(model),
    tools,
    metadata: body.metadata,
    externalId: thread,
  })
  const id = thread === undefined ? { id: temporaryId(hashBody, 'chat') } : {}
  try {
    const place = await openTentative(deps, access, { ...request, ...id })
    if (!place.isNew && !isOfModel(place.conversation, model)) throw otherModel()
    return { ...place, isTemporary: thread === undefined }
  } catch (error) {
    throw error instanceof Problem && error.code === 'conversation_exists' ? otherModel() : error
  }
}

function otherModel(): OpenAiError {
  const message = 'The thread cannot be used with this model. Send another X-Conversation-Id.'
  return new OpenAiError(409, message, { code: 'conversation_exists', param: 'model' })
}

/** Throws an `OpenAiError` if the conversation is busy, waits for something else, or has another history. */
export async function beginChat(chatPost: ChatPost, place: ChatPlace): Promise<ChatTurn> {
  const { conversation } = place
  const { outputs, newParts } = chatPost.messages
  const release = beginAlone(conversation.id)
  if (!release) throw busy()
  try {
    const marks = marksOf(chatPost.messages, chatPost.hashBody)
    const message = await earlierMessageOf(conversation, chatPost, marks)
    if (message !== undefined && outputs.length === 0) return { ...place, start: message, isNew: false }
    const results = outputs.length > 0 ? await resultsOf(conversation, chatPost.access, outputs, message) : undefined
    const isSaid = message !== undefined || newParts.length === 0
    if (results?.answers.length === 0 && isSaid && results.since !== undefined)
      return { ...place, start: message ?? results.since, isNew: false }
    refuseBusy(conversation)
    return { ...place, start: await begin(conversation, chatPost, { marks, message, results }), isNew: true }
  } finally {
    release()
  }
}

function refuseBusy(conversation: Conversation): void {
  if (!isAtRest(conversation)) throw waitingError(conversation) ?? busy()
}

type EarlierParts = {
  readonly marks: ChatMarks
  /** The seq of the message of this request, which the log has already. */
  readonly message: number | undefined
  readonly results: Results | undefined
}

/** All that can be refused is refused before anything changes. */
async function begin(
  conversation: Conversation,
  chatPost: ChatPost,
  { marks, message, results }: EarlierParts,
): Promise<number> {
  const { messages, access, tools, outputSchema, body, key, hashBody } = chatPost
  const head = conversation.log.head
  const place = message === undefined ? await placeOf(conversation, marks) : undefined
  if (place?.kind === 'other' || (results && place && place.kind !== 'end'))
    throw otherHistory(!results && marks.before.length === 0)
  const content = place ? partsFor(chatPost, place) : []
  if (content.length > 0) parseField(UserInput, { role: 'user', content }, 'messages')
  const target = place?.kind === 'earlier' ? place.toSeq : undefined
  if (target !== undefined && chatPost.thread === undefined) throw otherHistory(false)
  const isUnseen = target === undefined && !results && hasUnseen(conversation, messages)
  if (target === undefined && !isUnseen) refuseWaiting(conversation, results)
  const update = toolsUpdate(conversation, access, tools)
  if (results) access.require(REQUESTS.client_tool.scope)
  const prepare = async () => {
    refuseBusy(conversation)
    const rewind = (to: RewindRequest, options: RewindOptions) =>
      takeBack(conversation, to, { ...options, by: access.key?.name })
    await configureAndRewind(conversation, { update, toSeq: target, head, rewind })
    if (isUnseen) await conversation.pause({ interrupt: true })
  }
  const mark = { key: formatMark(marks.now, key), ...hashBody('chat request', body) }
  const { answers = [] } = results ?? {}
  const { temperature, max_tokens, max_completion_tokens, reasoning_effort } = body
  const sampling = { temperature, max_output_tokens: max_completion_tokens ?? max_tokens, reasoning_effort }
  const shape = {
    toolChoice: toolChoiceOf(body),
    runOptions: runOptionsWith(access, sampling, messages.system, 'messages'),
  }
  const start = await say(conversation, access, { answers, content, tools, outputSchema, ...shape, mark, prepare })
  return message ?? start
}

/** A message decides nothing, and a function that waits needs its result. */
function refuseWaiting(conversation: Conversation, results: Results | undefined): void {
  const waiting = results ? undefined : waitingError(conversation)
  if (waiting) throw waiting
  const [call] = conversation.requests.list().filter(({ kind }) => kind === 'client_tool')
  if (call && !results?.answers.length) throw missingResult(call.tool_use_ids[0])
}

/** What the agent is to read. */
function partsFor({ messages, access }: ChatPost, place: HistoryPlace): readonly UserPart[] {
  if (messages.newParts.length === 0) return []
  const isFirst = place.kind === 'new' || (place.kind === 'earlier' && place.isFirst)
  const system: UserPart[] =
    isFirst && mayNotInstruct(access) && messages.system !== '' ? [{ type: 'text', text: messages.system }] : []
  return [...system, ...(place.kind === 'new' ? importOf(messages.before) : []), ...messages.newParts]
}

async function takeBack(conversation: Conversation, to: RewindRequest, options: RewindOptions): Promise<void> {
  try {
    await conversation.rewind(to, options)
  } catch (error) {
    throw error instanceof Problem && error.code === 'invalid_request' ? otherHistory(false) : error
  }
}

function otherHistory(isShort: boolean): OpenAiError {
  const advice = 'Send all messages unchanged, with the answers, or another X-Conversation-Id.'
  const why = isShort
    ? 'The conversation has messages that are not in this request.'
    : 'The conversation does not have the messages of this request, or has others.'
  return new OpenAiError(409, `${why} ${advice}`, { code: 'history_differs', param: 'messages' })
}

/** Calls of functions that the client has not seen, because another client decided about the calls before them. */
function hasUnseen(conversation: Conversation, { callIds }: ChatMessages): boolean {
  const seenIds = new Set([...callIds].map((id) => toolUseOf(conversation, id)))
  const open = conversation.requests.list().filter(({ kind }) => kind === 'client_tool')
  return open.length > 0 && open.every(({ tool_use_ids }) => tool_use_ids.every((id) => !seenIds.has(id)))
}

/** A message decides nothing. Undefined if nothing waits but questions, which the next message closes, and functions. */
function waitingError(conversation: Conversation): OpenAiError | undefined {
  const waiting = conversation.requests.list().filter(({ kind }) => kind !== 'question' && kind !== 'client_tool')
  if (waiting.length === 0) return undefined
  const words = waiting.map((request) => waitingWords(request, conversation.id)).join(' ')
  return new OpenAiError(409, words, { code: 'waiting_for_decision', param: 'messages' })
}
