/** Finds which of the messages of a client the thread does not have. Clients send all of them each time. */
import { isDeepStrictEqual } from 'node:util'
import type { EventOf } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { TextPart, UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { importOf } from '../shared/earlier-messages.ts'
import type { ChatMessage } from '../shared/earlier-messages.ts'
import { userMessages } from '../shared/user-messages.ts'
import { idOfUserMessage, partsOfUserMessage } from './ag-ui-event.ts'
import type { PostableMessage, RunPost, UserInputMessage, UserInputs } from './run-post.ts'
import type { InputMessage, RunInput } from './run-input.ts'
import { invalid } from '../shared/fields.ts'
import { EMPTY_CONTEXT, contextPartOf, partsIn } from './run-input.ts'

export type NewMessages = {
  readonly toPost: readonly PostableMessage[]
  /** Undefined if the agent knows it. */
  readonly context: UserPart | undefined
}

const SYSTEM: ReadonlySet<string> = new Set(['system', 'developer'])

/** Returns the messages of the user after the last answer. */
const trailing = ({ messages }: Pick<RunInput, 'messages'>): readonly InputMessage[] =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).filter(({ role }) => role === 'user')

/** Texts for the system prompt, with which the messages begin. */
export function instructionsOf({ messages }: RunInput): string {
  const end = messages.findIndex(({ role }) => !SYSTEM.has(role))
  const system = end < 0 ? messages : messages.slice(0, end)
  return system.flatMap(({ content }) => partsIn(content).map(textOfPart)).join('\n\n')
}

/** Throws a `Problem` that names the field. */
export function userInputsOf(input: RunInput): UserInputs {
  const messages = trailing(input).map(({ id, content }) => ({ id, parts: partsIn(content) }))
  if (new Set(messages.map(({ id }) => id)).size < messages.length)
    throw invalid('messages', 'has several messages with one id')
  if (messages.some(({ parts }) => parts.length === 0)) throw invalid('messages', 'has a message without text or image')
  return { messages, context: contextPartOf(input) }
}

/** Throws a `Problem` if the thread has a message of the same id that says something else. */
export async function newMessagesOf(
  conversation: Conversation,
  { input, userInputs, hashBody }: Pick<RunPost, 'input' | 'userInputs' | 'hashBody'>,
): Promise<NewMessages> {
  const { messages, context } = userInputs
  if (messages.length === 0) return NOTHING
  const knownMessages = await knownIn(conversation, input, context !== undefined)
  for (const message of messages) refuseOther(knownMessages.byId.get(message.id), message, hashBody)
  const newMessages = messages.filter(({ id }) => !knownMessages.byId.has(id))
  return {
    toPost: knownMessages.isEmpty ? asFirst(newMessages, input) : newMessages,
    context: isNews(conversation, context, knownMessages.context) ? context : undefined,
  }
}

/** The log has it without secrets. */
const isNews = ({ redact }: Conversation, context: TextPart | undefined, before = EMPTY_CONTEXT): boolean =>
  context !== undefined && redact(context.text) !== before

const NOTHING: NewMessages = { toPost: [], context: undefined }

/** What a thread begins with that does not exist yet. Throws a `Problem` for what it cannot begin with. */
export const firstMessagesOf = (input: RunInput, { messages, context }: UserInputs): NewMessages => ({
  toPost: asFirst(messages, input),
  context,
})

function asFirst([first, ...others]: readonly UserInputMessage[], input: RunInput): PostableMessage[] {
  return first ? [{ ...first, earlier: importOf(earlierOf(input)) }, ...others] : []
}

/** What a page has loaded is as it is stored: without secrets, and with what came before it. */
function refuseOther(event: EventOf<'UserMessage'> | undefined, { parts }: UserInputMessage, hashBody: HashBody): void {
  if (!event) return
  const { bodyHash, formerHashes } = hashBody('ag-ui message', parts)
  if ([bodyHash, ...formerHashes].includes(event.body_hash ?? '')) return
  if (isDeepStrictEqual(partsOfUserMessage(event).ownParts, parts)) return
  throw new Problem(
    'idempotency_mismatch',
    'The thread has a message with this id and another text. Send the new text with a new id.',
  )
}

/** `byId`: those of the messages of this request that it has. */
type KnownMessages = {
  readonly byId: ReadonlyMap<string, EventOf<'UserMessage'>>
  readonly context: string | undefined
  readonly isEmpty: boolean
}

/** Older messages of users are not looked at. */
const MAX_COMPARED_MESSAGES = 1000

/** Reads back as far as it must: to a message that the client had sent before its last answer. */
async function knownIn(conversation: Conversation, input: RunInput, wantsContext: boolean): Promise<KnownMessages> {
  const last = new Set(trailing(input).map(({ id }) => id))
  const earlier = new Set(input.messages.flatMap(({ id }) => (last.has(id) ? [] : [id])))
  const byId = new Map<string, EventOf<'UserMessage'>>()
  let context: string | undefined
  let isEarlier = false
  let count = 0
  for await (const event of userMessages(conversation)) {
    const id = idOfUserMessage(event)
    if (last.has(id) && !byId.has(id)) byId.set(id, event)
    const { context: part } = partsOfUserMessage(event)
    if (part?.type === 'text') context ??= part.text
    isEarlier ||= earlier.has(id)
    if (++count === MAX_COMPARED_MESSAGES || (isEarlier && (context !== undefined || !wantsContext))) break
  }
  return { byId, context, isEmpty: count === 0 }
}

/** What another server has answered, for a thread that begins here. */
function earlierOf({ messages }: RunInput): ChatMessage[] {
  const end = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  return messages.slice(0, end).flatMap(({ role, content, toolCalls }): ChatMessage[] => {
    if (role !== 'user' && role !== 'assistant' && role !== 'tool') return []
    const calls = (toolCalls ?? []).map(({ function: { name, arguments: input } }) => `${name} ${input}`)
    return [{ role, parts: partsIn(content), calls }]
  })
}

const textOfPart = (part: UserPart): string => (part.type === 'text' ? part.text : '')
