/** Finds which of the messages of a client the thread does not have. Clients send all of them each time. */
import type { UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { importOf } from '../shared/earlier-messages.ts'
import type { ChatMessage } from '../shared/earlier-messages.ts'
import { idOfUserMessage, isContext } from './ag-ui-event.ts'
import type { InputMessage, RunInput } from './run-input.ts'
import { invalid } from '../shared/fields.ts'
import { contextPartOf, partsIn } from './run-input.ts'

export type NewMessages = {
  readonly toPost: readonly UserInputMessage[]
  /** Undefined if the agent knows it. */
  readonly context: UserPart | undefined
}

const PAGE = 256
const SAID: ReadonlySet<string> = new Set(['UserMessage'])
const SYSTEM: ReadonlySet<string> = new Set(['system', 'developer'])

/** Those of the user after the last answer. */
const trailing = ({ messages }: Pick<RunInput, 'messages'>): readonly InputMessage[] =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).filter(({ role }) => role === 'user')

/** Texts for the system prompt, with which the messages begin. */
export function instructionsOf({ messages }: RunInput): string {
  const end = messages.findIndex(({ role }) => !SYSTEM.has(role))
  const system = end < 0 ? messages : messages.slice(0, end)
  return system.flatMap(({ content }) => partsIn(content).map(textOfPart)).join('\n\n')
}

/** What a client says with a request, whether the thread has it or not. */
export type UserInputs = {
  readonly messages: readonly UserInputMessage[]
  /** What the application says of itself. */
  readonly context: UserPart | undefined
}
type UserInputMessage = { readonly id: string; readonly parts: readonly UserPart[] }

/** Throws a `Problem` that names the field. */
export function userInputsOf(input: RunInput): UserInputs {
  const messages = trailing(input).map(({ id, content }) => ({ id, parts: partsIn(content) }))
  if (new Set(messages.map(({ id }) => id)).size < messages.length)
    throw invalid('messages', 'has several messages with one id')
  if (messages.some(({ parts }) => parts.length === 0)) throw invalid('messages', 'has a message without text or image')
  return { messages, context: contextPartOf(input) }
}

export async function newMessagesOf(
  conversation: Conversation,
  input: RunInput,
  { messages, context }: UserInputs,
): Promise<NewMessages> {
  if (messages.length === 0) return { toPost: [], context: undefined }
  const knownMessages = await knownIn(conversation, input, context !== undefined)
  const importedParts = knownMessages.isEmpty ? importOf(earlierOf(input)) : []
  const [first, ...others] = messages.filter(({ id }) => !knownMessages.ids.has(id))
  return {
    toPost: first ? [{ ...first, parts: [...importedParts, ...first.parts] }, ...others] : [],
    context: context?.type === 'text' && context.text === knownMessages.context ? undefined : context,
  }
}

type KnownMessages = {
  readonly ids: ReadonlySet<string>
  readonly context: string | undefined
  readonly isEmpty: boolean
}

/** Reads back as far as it must: to a message that the client had sent before its last answer. */
async function knownIn({ log }: Conversation, input: RunInput, wantsContext: boolean): Promise<KnownMessages> {
  const ids = new Set<string>()
  const last = new Set(trailing(input).map(({ id }) => id))
  const earlier = new Set(input.messages.flatMap(({ id }) => (last.has(id) ? [] : [id])))
  let context: string | undefined
  for await (const { events } of readPages(log, { beforeSeq: log.head + 1, types: SAID, order: 'desc', limit: PAGE })) {
    for (const { event } of events) {
      if (event.type !== 'UserMessage') continue
      ids.add(idOfUserMessage(event))
      const part = event.content.find(isContext)
      if (part?.type === 'text') context ??= part.text
    }
    if ((context !== undefined || !wantsContext) && [...ids].some((id) => earlier.has(id))) break
  }
  return { ids, context, isEmpty: ids.size === 0 }
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
