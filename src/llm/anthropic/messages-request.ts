/**
 * The body of a request to Anthropic's Messages API, as JSON text. As with Chat Completions, each request extends the
 * messages of the previous one byte for byte, and each message is serialised once.
 *
 * The messages of the API alternate: consecutive messages of one role are written as one. So the list is kept open, in
 * the last block of its last message, and closed in each request.
 *
 * At most three places are marked for the prompt cache, of the four that are allowed: the tools, which many
 * conversations share, the system prompt, and the end of the messages.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { GrowingBytes } from '../request/growing-bytes.ts'
import { createGrowingBytes } from '../request/growing-bytes.ts'
import { withoutImage } from '../request/images.ts'
import { createKeptHead } from '../request/kept-head.ts'
import { createIncrementalFold } from '../request/growing-bytes.ts'
import type { LlmRequest, ModelMessage, ModelTool } from '../llm.ts'
import type { RequestWriter } from '../provider.ts'
import { indexAfter } from '../request/refused-reasoning.ts'
import { callIdFor, jsonOf, withoutKeys } from '../request/request-parts.ts'
import { assistantBlocks } from './assistant-blocks.ts'
import type { MessagesDialect } from './messages-dialect.ts'
import { thinkingOf } from './thinking.ts'

export function createRequestWriter(config: LlmConfig, { model }: Endpoint): RequestWriter<MessagesDialect> {
  const writers = new Map<string, MessagesWriter>()
  const writerFor = (dialect: MessagesDialect, messages: readonly ModelMessage[]) => {
    const reasoningFrom = indexAfter(messages, dialect.refusedReasoning)
    const shownParts = { withImages: dialect.images && !config.disable_vision, reasoningFrom }
    const name = JSON.stringify(shownParts)
    const knownWriter = writers.get(name) ?? createMessagesWriter(shownParts)
    writers.set(name, knownWriter)
    return knownWriter
  }
  const extra = withoutKeys(config.extra_body ?? {}, ['messages'])
  const headFor = createKeptHead()
  return (request, dialect) => {
    const settings = settingsOf(config, dialect, request)
    const before = headFor(request, `${dialect.cache} ${JSON.stringify(settings)}`, () => {
      const head = jsonOf({ model, ...settings, ...promptOf(request, dialect), ...extra })
      return `${head.slice(0, -1)},"messages":[`
    })
    const list = writerFor(dialect, request.messages)(request.messages)
    return list.between(before, list.isEmpty ? NO_MESSAGES : dialect.cache === 'marked' ? MARKED_END : END)
  }
}

const MARK = { type: 'ephemeral' }

const NO_MESSAGES = Buffer.from(']}')
/** Ends the last block, its message, the list of messages, and the request. */
const END = Buffer.from('}]}]}')
const MARKED_END = Buffer.from(`,"cache_control":${jsonOf(MARK)}}]}]}`)

function settingsOf(config: LlmConfig, dialect: MessagesDialect, request: LlmRequest) {
  const max_tokens = config.max_output_tokens ?? dialect.maxTokens
  const hasTools = request.tools.length > 0
  return {
    max_tokens,
    stream: true,
    // JSON.stringify omits `undefined`: the provider decides about unset values.
    temperature: config.temperature,
    top_p: config.top_p,
    top_k: config.top_k,
    ...outputSettings(config, dialect, request, max_tokens),
    ...(hasTools && config.tool_choice && { tool_choice: { type: TOOL_CHOICES[config.tool_choice] } }),
    ...(dialect.cache === 'automatic' && { cache_control: MARK }),
  }
}

/** The effort of the thinking and the format of the output are in one field. */
function outputSettings(config: LlmConfig, dialect: MessagesDialect, request: LlmRequest, maxTokens: number) {
  const { effort, ...thinking } = thinkingOf(config, dialect, { ...request, maxTokens })
  const schema = dialect.schema ? request.outputSchema : undefined
  const format = schema && { format: { type: 'json_schema', schema } }
  return { ...thinking, ...((effort ?? format) && { output_config: { effort, ...format } }) }
}

const TOOL_CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const

function promptOf({ system, instructions = '', tools }: LlmRequest, { cache }: MessagesDialect) {
  const mark = cache !== 'none' && { cache_control: MARK }
  // The instructions of a run are not marked: the system prompt stays in the cache when they change.
  const systemBlocks = [{ text: system, ...mark }, { text: instructions }]
    .filter(({ text }) => text.trim())
    .map((block) => ({ type: 'text', ...block }))
  return {
    ...(tools.length > 0 && {
      tools: tools.map((tool, at) => ({ ...toolBody(tool), ...(at === tools.length - 1 && mark) })),
    }),
    ...(systemBlocks.length > 0 && { system: systemBlocks }),
  }
}

function toolBody({ name, description, inputSchema }: ModelTool) {
  return { name, description, input_schema: inputSchema }
}

type ShownParts = { readonly withImages: boolean; readonly reasoningFrom: number }
type MessagesWriter = (messages: readonly ModelMessage[]) => GrowingBytes
type WrittenMessages = {
  readonly list: GrowingBytes
  readonly lastRole: 'user' | 'assistant' | undefined
  readonly count: number
}

/** Returns the messages as the inside of a JSON list that ends before the last bracket of a block of its last message. */
function createMessagesWriter(shownParts: ShownParts): MessagesWriter {
  const begin = (): WrittenMessages => ({ list: createGrowingBytes(), lastRole: undefined, count: 0 })
  const fold = createIncrementalFold(begin, ({ list, lastRole, count }, message: ModelMessage): WrittenMessages => {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks = blocksOf(message, shownParts, count >= shownParts.reasoningFrom).join(',')
    if (blocks === '') return { list, lastRole, count: count + 1 }
    const border = role === lastRole ? '},' : `${lastRole ? '}]},' : ''}{"role":"${role}","content":[`
    list.append(`${border}${blocks.slice(0, -1)}`)
    return { list, lastRole: role, count: count + 1 }
  })
  return (messages) => fold(messages).list
}

function blocksOf(message: ModelMessage, { withImages }: ShownParts, withReasoning: boolean): string[] {
  switch (message.role) {
    case 'user':
      return message.repeatsImages ? [] : message.content.map((part) => jsonOf(userBlock(part, withImages)))
    case 'assistant':
      return assistantBlocks(message, withReasoning)
    case 'tool':
      return [jsonOf(resultBlock(message, withImages))]
  }
}

function userBlock(part: UserPart, withImages: boolean): object {
  const shownPart = withImages ? part : withoutImage(part)
  if (shownPart.type === 'text') return { type: 'text', text: shownPart.text }
  return { type: 'image', source: { type: 'base64', media_type: shownPart.media_type, data: shownPart.data } }
}

/** An error may hold text only. */
function resultBlock(message: Extract<ModelMessage, { role: 'tool' }>, withImages: boolean): object {
  const { toolCallId, content, images = [], isError } = message
  return {
    type: 'tool_result',
    tool_use_id: callIdFor(toolCallId),
    content:
      images.length === 0
        ? content
        : [{ type: 'text', text: content }, ...images.map((image) => userBlock(image, withImages))],
    ...(isError && images.length === 0 && { is_error: true }),
  }
}
