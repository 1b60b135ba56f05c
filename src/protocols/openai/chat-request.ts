/** The body of `POST /v1/chat/completions`. Unknown fields are ignored; what would change the meaning is refused by name. */
import { z } from 'zod'
import { RunOptions } from '../../contract/run.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { ChatMessage } from '../shared/earlier-messages.ts'
import { textIn } from '../shared/earlier-messages.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { imageOf, textParts } from '../shared/input-parts.ts'
import type { CallOutput } from './response-request.ts'
import { isToolChoice, MAX_PARTS, outputSchemaOf } from './response-request.ts'

const MAX_MESSAGES = 10_000

const Part = z.looseObject({ type: z.string() })
const Content = z.union([z.string(), z.array(Part).max(MAX_PARTS)]).nullish()
const ToolCall = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }).optional(),
})
const Message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['system', 'developer', 'user']), content: Content }),
  z.looseObject({
    role: z.literal('assistant'),
    content: Content,
    tool_calls: z.array(ToolCall).max(MAX_PARTS).nullish(),
  }),
  z.looseObject({ role: z.literal('tool'), content: Content, tool_call_id: z.string() }),
])

export const ChatRequest = z.looseObject({
  model: z.string().min(1).max(200),
  messages: z.array(Message).min(1).max(MAX_MESSAGES),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.unknown().optional(),
  temperature: RunOptions.shape.temperature.nullable(),
  max_tokens: RunOptions.shape.max_output_tokens.nullable(),
  max_completion_tokens: RunOptions.shape.max_output_tokens.nullable(),
  reasoning_effort: RunOptions.shape.reasoning_effort.nullable(),
  response_format: z
    .looseObject({ type: z.string(), json_schema: z.record(z.string(), z.unknown()).nullish() })
    .nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
})
export type ChatRequest = z.infer<typeof ChatRequest>

/** Throws a `Problem` that names the field. */
export function parseChat(body: unknown): ChatRequest {
  const request = parseField(ChatRequest, body)
  for (const [field, isMeant, advice] of REFUSED)
    if (isMeant(request[field])) throw invalid(field, `is not supported; ${advice}`)
  const other = request.tools?.find(({ type }) => type !== 'function')
  if (other)
    throw invalid('tools', `has a tool of the type ${other.type.slice(0, 50)}, which is not supported; send functions`)
  return request
}

const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0)

const REFUSED: readonly (readonly [string, (value: unknown) => boolean, string])[] = [
  ['n', (n) => isGiven(n) && n !== 1, 'there is one answer'],
  ['logprobs', isGiven, 'leave it out'],
  ['top_logprobs', (count) => isGiven(count) && count !== 0, 'leave it out'],
  ['audio', isGiven, 'answers are text'],
  ['modalities', (all) => Array.isArray(all) && all.some((one) => one !== 'text'), 'answers are text'],
  ['stop', (stop) => isGiven(stop) && stop !== '', 'leave it out'],
  ['functions', isGiven, 'send tools'],
  ['function_call', (choice) => isGiven(choice) && choice !== 'auto' && choice !== 'none', 'send tool_choice'],
  ['web_search_options', isGiven, 'the profile has the tools of the agent'],
  ['response_format', (format) => isGiven(format) && !FORMATS.has(Object(format)['type']), 'send json_schema'],
  ['tool_choice', (choice) => isGiven(choice) && !isToolChoice(choice), 'send auto, required or none'],
]

const FORMATS: ReadonlySet<unknown> = new Set(['text', 'json_object', 'json_schema'])

/** The form of the answer; undefined: it may have any. */
export const chatSchemaOf = ({ response_format: format }: ChatRequest): Record<string, unknown> | undefined =>
  outputSchemaOf({ text: format && { format: { ...format.json_schema, type: format.type } } })

/** The messages of a request, cut after the last answer of the model. */
export type ChatMessages = {
  /** What the client says to the agent before all messages. */
  readonly system: string
  /** The messages up to the last answer. */
  readonly before: readonly ChatMessage[]
  /** What is to be answered. */
  readonly newParts: readonly UserPart[]
  readonly outputs: readonly CallOutput[]
  /** The calls that the client has been asked for, as it says. */
  readonly callIds: ReadonlySet<string>
}

/** Throws a `Problem`. */
export function readMessages({ messages }: ChatRequest): ChatMessages {
  const all = messages.map(readMessage)
  const first = all.findIndex(({ role }) => role !== 'system')
  const begin = first < 0 ? all.length : first
  const border = Math.max(all.findLastIndex(({ role }) => role === 'assistant') + 1, begin)
  // Later ones are read where they are.
  const before = all.slice(begin, border).map(asOfUser)
  const now = all.slice(border).map(asOfUser)
  const newParts = now.flatMap(({ role, parts }) => (role === 'user' ? parts : []))
  const outputs = messages.slice(border).flatMap((message, at): CallOutput[] => {
    const parts = all[border + at]?.parts ?? []
    if (message.role !== 'tool') return []
    return [{ callId: message.tool_call_id, output: typeof message.content === 'string' ? message.content : parts }]
  })
  if (newParts.length + outputs.length === 0)
    throw invalid('messages', 'must end with a message of the user that has text or an image, or with results of tools')
  if (newParts.length > MAX_PARTS) throw invalid('messages', `may have ${MAX_PARTS} new parts of the user at most`)
  const askedParts = messages.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []))
  const callIds = new Set(askedParts.map(({ id }) => id))
  const system = all.slice(0, begin).flatMap(({ parts }) => parts.map(textIn))
  return { system: system.join('\n\n'), before, newParts, outputs, callIds }
}

const asOfUser = (message: ChatMessage): ChatMessage =>
  message.role === 'system'
    ? { ...message, role: 'user', parts: message.parts.map((part) => withRole('system', part)) }
    : message

function readMessage(message: z.infer<typeof Message>): ChatMessage {
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return {
    role: message.role === 'developer' ? 'system' : message.role,
    parts: partsIn(message.content),
    calls: calls.map(
      ({ function: calledFunction }) => `${calledFunction?.name ?? 'a tool'} ${calledFunction?.arguments ?? ''}`,
    ),
  }
}

function partsIn(content: z.infer<typeof Content>): UserPart[] {
  const givenParts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
  return givenParts.flatMap((part): UserPart[] => {
    if (part.type === 'image_url') return [imageOf(urlIn(part))]
    const text: unknown = part.type === 'refusal' ? Object(part)['refusal'] : Object(part)['text']
    if (part.type !== 'text' && part.type !== 'refusal')
      throw invalid('messages', `has content of the type ${part.type.slice(0, 50)}, which is not supported`)
    return typeof text === 'string' ? textParts(text) : []
  })
}

/** Some clients send the URL alone. */
function urlIn(part: object): unknown {
  const givenParts: unknown = Object(part)['image_url']
  return typeof givenParts === 'string' ? givenParts : Object(givenParts)['url']
}

const withRole = (role: string, part: UserPart): UserPart =>
  part.type === 'text' ? { type: 'text', text: `${role}: ${part.text}` } : part
