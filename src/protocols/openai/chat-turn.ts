/** Begins the turn that a request of the Chat Completions API asks for: in its thread, or in its own conversation. */
import { Problem } from '../../contract/problem.ts'
import { AnswerRequest } from '../../contract/request.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { ANSWER_SCOPES } from '../../contract/values/request-kinds.ts'
import { checkOutputSchema } from '../../conversations/config/check-output-schema.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { createOrFind } from '../../http/guards/create-or-find.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { busy, takeTurn, useTools } from './begin-turn.ts'
import { parseCallId } from './chat-builder.ts'
import type { ChatAsk } from './chat-ask.ts'
import { createRequestFor, mayNotInstruct } from './create-request.ts'
import { earlierTurnOf } from './chat-retries.ts'
import { importOf } from './chat-import.ts'
import type { ChatMarks } from './chat-history.ts'
import { formatMark, marksOf, placeOf } from './chat-history.ts'
import type { ChatMessages, ChatRequest } from './chat-request.ts'
import { formatOf, toolChoiceOf } from './chat-request.ts'
import { waitingWords } from './chat-words.ts'
import type { GatewayDeps } from './gateway-deps.ts'
import { OpenAiError, refusal } from './openai-error.ts'
import type { CallOutput } from './response-request.ts'
import { clientToolsOf, outputSchemaOf, parseBody } from './response-request.ts'

/** `start`: seq of the first event of the turn. */
export type ChatTurn = { readonly conversation: Conversation; readonly start: number; readonly isTemporary: boolean }

/** Where a turn begins; `isTemporary`: it goes with its answer. `isNew`: made for this request. */
export type ChatPlace = {
  readonly conversation: Conversation
  readonly isTemporary: boolean
  readonly isNew: boolean
}

/** Throws an `OpenAiError` for results that nothing waits for. */
export async function placeFor(deps: GatewayDeps, ask: ChatAsk): Promise<ChatPlace> {
  const { messages, thread, access } = ask
  const [first] = messages.outputs
  if (!first) return await threadFor(deps, ask)
  const { conversationId, isTemporary = false } = parseCallId(first.callId) ?? {}
  await deps.manager.upToDate()
  const owner = conversationId === undefined ? undefined : deps.manager.ownerOf(conversationId)
  if (conversationId === undefined || !owner || !access.sees(owner)) throw notWaiting(first.callId)
  const conversation = await deps.manager.open(conversationId)
  const { external_id, profile } = conversation.state.settings
  if (profile !== ask.body.model || (thread !== undefined && external_id !== thread)) throw notWaiting(first.callId)
  return { conversation, isTemporary: isTemporary && external_id === undefined, isNew: false }
}

async function threadFor(deps: GatewayDeps, ask: ChatAsk): Promise<ChatPlace> {
  const { body, messages, thread, access } = ask
  const request = await createRequestFor(deps, access, {
    profile: body.model,
    tools: toolsOf(body),
    metadata: body.metadata,
    instructions: messages.system,
    externalId: thread,
  })
  try {
    const { view, isNew } = await createOrFind(deps.manager, access, request)
    return { conversation: await deps.manager.open(view.id), isTemporary: thread === undefined, isNew }
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'conversation_exists')) throw error
    const message = 'The thread cannot be used with this model. Send another X-Conversation-Id.'
    throw new OpenAiError(409, message, { code: 'conversation_exists', param: 'model' })
  }
}

/** Throws an `OpenAiError` if the conversation is busy, waits for something else, or has another history. */
export async function beginChat(ask: ChatAsk, place: ChatPlace): Promise<ChatTurn> {
  const { conversation } = place
  const release = takeTurn(conversation.id)
  if (!release) throw busy()
  try {
    const marks = marksOf(ask.messages, ask.hashBody)
    const earlier = await earlierTurnOf(conversation, ask, marks)
    if (earlier !== undefined) return { ...place, start: earlier }
    if (isBusy(conversation)) throw waitingError(conversation) ?? busy()
    const start = await begin(conversation, ask, marks)
    return { ...place, start }
  } finally {
    release()
  }
}

/** A call that the client executes waits within the run at first. */
const isBusy = ({ state, requests }: Conversation): boolean =>
  state.status === 'running' && requests.list().every(({ kind }) => kind !== 'client_tool')

async function begin(conversation: Conversation, ask: ChatAsk, marks: ChatMarks): Promise<number> {
  const { messages, access, body } = ask
  const { outputs, newParts } = messages
  const schema = outputSchemaOf(formatOf(body))
  if (schema) await checkOutputSchema(schema)
  // What is refused takes nothing back.
  if (newParts.length > 0) parseBody(UserInput, { role: 'user', content: newParts })
  const parts = await partsFor(conversation, ask, marks)
  if (outputs.length === 0) {
    const waiting = waitingError(conversation)
    if (waiting) throw waiting
    await endUnseen(conversation, messages)
  }
  const answers = answersTo(conversation, outputs)
  await useTools(conversation, access, toolsOf(body))
  const start = conversation.log.head + 1
  for (const { requestId, answer } of answers) {
    access.require(ANSWER_SCOPES[answer.kind])
    await conversation.requests.answer(requestId, answer, access.key?.name)
  }
  const seq = newParts.length > 0 ? await say(conversation, ask, marks, parts) : undefined
  return answers.length > 0 ? start : (seq ?? start)
}

/** Takes the conversation back, if the client has. Returns what the agent is to read. */
async function partsFor(conversation: Conversation, ask: ChatAsk, marks: ChatMarks): Promise<readonly UserPart[]> {
  const { messages, access } = ask
  const head = conversation.log.head
  const place = await placeOf(conversation, marks)
  if (place.kind === 'other') throw otherHistory(marks.before.length === 0)
  const isFirst = place.kind === 'new' || (place.kind === 'earlier' && place.isFirst)
  if (messages.outputs.length > 0 && place.kind !== 'end') throw otherHistory(false)
  if (place.kind === 'earlier') {
    if (ask.thread === undefined) throw otherHistory(false)
    await conversation
      .rewind({ to_seq: place.toSeq, last_seq: head }, { by: access.key?.name })
      .catch((error: unknown) => {
        throw error instanceof Problem && error.code === 'invalid_request' ? otherHistory(false) : error
      })
  }
  const system: UserPart[] =
    isFirst && mayNotInstruct(access) && messages.system !== '' ? [{ type: 'text', text: messages.system }] : []
  return [...system, ...(place.kind === 'new' ? importOf(messages.before) : []), ...messages.newParts]
}

function otherHistory(isShort: boolean): OpenAiError {
  const advice = 'Send all messages unchanged, with the answers, or another X-Conversation-Id.'
  const why = isShort
    ? 'The conversation has messages that are not in this request.'
    : 'The conversation does not have the messages of this request, or has others.'
  return new OpenAiError(409, `${why} ${advice}`, { code: 'history_differs', param: 'messages' })
}

/** Calls of functions that the client has not seen, because another client decided about the calls before them. */
async function endUnseen(conversation: Conversation, { callIds }: ChatMessages): Promise<void> {
  const seenIds = new Set([...callIds].map((id) => toolUseOf(conversation, id)))
  const open = conversation.requests.list().filter(({ kind }) => kind === 'client_tool')
  if (open.length > 0 && open.every(({ tool_use_ids }) => tool_use_ids.every((id) => !seenIds.has(id))))
    await conversation.pause({ interrupt: true })
}

type Answer = { readonly requestId: string; readonly answer: AnswerRequest }

/** Each function that waits needs a result, or none is stored. */
function answersTo(conversation: Conversation, outputs: readonly CallOutput[]): readonly Answer[] {
  const open = conversation.requests.list().filter(({ kind }) => kind === 'client_tool')
  const outputById = new Map(outputs.map(({ callId, output }) => [toolUseOf(conversation, callId), output]))
  const openIds = new Set(open.flatMap(({ tool_use_ids }) => tool_use_ids))
  for (const { callId } of outputs) if (!openIds.has(toolUseOf(conversation, callId))) throw notWaiting(callId)
  return open.map(({ request_id: requestId, tool_use_ids: [id = ''] }) => {
    if (!outputById.has(id))
      throw new OpenAiError(400, `A message of the role tool is missing for the call that ends with ${id}.`, {
        param: 'messages',
      })
    return { requestId, answer: parseBody(AnswerRequest, { kind: 'client_tool', output: outputById.get(id) }) }
  })
}

function toolUseOf({ id }: Conversation, callId: string): string {
  const { conversationId, toolUseId } = parseCallId(callId) ?? {}
  return conversationId === id && toolUseId !== undefined ? toolUseId : ''
}

const notWaiting = (callId: string): OpenAiError =>
  refusal('tool_call_id', `${callId.slice(0, 200)} does not wait for a result`)

/** A message decides nothing. Undefined if nothing waits but questions, which the next message ends, and functions. */
function waitingError(conversation: Conversation): OpenAiError | undefined {
  const waiting = conversation.requests.list().filter(({ kind }) => kind !== 'question' && kind !== 'client_tool')
  if (waiting.length === 0) return undefined
  const words = waiting.map((request) => waitingWords(request, conversation.id)).join(' ')
  return new OpenAiError(409, words, { code: 'waiting_for_decision', param: 'messages' })
}

async function say(
  conversation: Conversation,
  { body, key, hashBody }: ChatAsk,
  { now }: ChatMarks,
  content: readonly UserPart[],
): Promise<number> {
  const message = parseBody(UserInput, { role: 'user', content })
  const output_schema = outputSchemaOf(formatOf(body))
  const tool_choice = toolChoiceOf(body)
  // The client executes them itself: it needs no decision about its own functions. Rules that ask or deny hold.
  const allowed_tools = toolsOf(body).flatMap(({ name }) => (/^[A-Za-z_]/.test(name) ? [name] : []))
  const wishes = {
    ...(output_schema && { output_schema }),
    ...(tool_choice && { tool_choice }),
    ...(allowed_tools.length > 0 && { allowed_tools }),
  }
  const isPlain = Object.keys(wishes).length === 0
  const mark = { key: formatMark(now, key ?? uuid7()), ...hashBody('chat request', body) }
  const { seq, event_id } = await conversation.post({ message, run: isPlain }, mark)
  if (isPlain) return seq
  try {
    await conversation.run(wishes)
  } catch (error) {
    // A message that nobody reads would be a part of the next turn.
    await conversation.withdrawals.withdraw(event_id)
    throw error
  }
  return seq
}

const toolsOf = (body: ChatRequest) => clientToolsOf({ tools: body.tools })
