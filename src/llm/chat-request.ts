/**
 * The body of a Chat Completions request, as JSON text.
 *
 * Providers cache a prompt by its longest known prefix, and a cached token costs a tenth. So what changes rarely comes
 * first, and the request of a step is the one before plus what was said since, byte for byte: model, tools, then the
 * messages. Each message is serialised once, so a step of a long conversation costs no walk through the whole history.
 */
import type { LlmConfig } from '../contract/llm-config.ts'
import type { UserPart } from '../contract/message.ts'
import { createGrownFold } from '../lib/grown-fold.ts'
import type { GrowingBytes } from '../lib/growing-bytes.ts'
import { createGrowingBytes } from '../lib/growing-bytes.ts'
import { parseJsonObject } from '../lib/json-object.ts'
import type { LlmRequest, ModelMessage, ModelTool, ModelToolCall } from './llm.ts'
import { isOpenAiReasoningModel, wantsReasoningBack } from './models.ts'
import type { Endpoint } from './endpoint.ts'

/** In what compatible endpoints differ; what was guessed wrong is learnt from their refusal. */
export type Dialect = {
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  readonly streamOptions: boolean
  /** Without, the model is told of each image that there is one. */
  readonly images: boolean
}

export type RequestWriter = (request: LlmRequest, dialect: Dialect) => Buffer

/**
 * OpenAI deprecated `max_tokens` and its reasoning models refuse it, wherever they are hosted; most other servers know
 * nothing else, and some ignore the new name without a word, which would lift the limit.
 */
export function firstDialect({ baseUrl, model }: Endpoint): Dialect {
  const isOpenAi = new URL(baseUrl).hostname === 'api.openai.com'
  return {
    maxTokensField: isOpenAi || isOpenAiReasoningModel(model) ? 'max_completion_tokens' : 'max_tokens',
    streamOptions: true,
    images: true,
  }
}

/** The dialect to try next when an endpoint refused this one, by what it complained about. */
export function dialectAfterRefusal(dialect: Dialect, complaint: string): Dialect | undefined {
  if (dialect.streamOptions && complaint.includes('stream_options')) return { ...dialect, streamOptions: false }
  // An image stays in the history: were it not left out, no later request of the conversation would be taken.
  if (dialect.images && NO_IMAGES.test(complaint)) return { ...dialect, images: false }
  if (!complaint.includes(dialect.maxTokensField)) return undefined
  if (!/unsupported|not supported|unrecognized|unknown|not permitted|unexpected|extra/i.test(complaint))
    return undefined
  return {
    ...dialect,
    maxTokensField: dialect.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens',
  }
}

/**
 * How endpoints say that they, or their model, take no images, or not this one. The last two are what those say that
 * know nothing of content parts.
 */
const NO_IMAGES = /image|\bvision\b|multi-?modal|content must be a string|content.{0,40}invalid type: sequence/i

export function createRequestWriter(config: LlmConfig, model: string): RequestWriter {
  const withReasoning = wantsReasoningBack(model)
  const withImages = createMessagesWriter({ withReasoning, withImages: true })
  const withoutImages = createMessagesWriter({ withReasoning, withImages: false })
  return ({ system, messages, tools }, dialect) => {
    const head = {
      model,
      ...settingsOf(config, dialect, tools.length > 0),
      ...(tools.length > 0 && { tools: tools.map(toolBody) }),
    }
    const extra = withoutKeys(config.extra_body ?? {}, ['messages'])
    const list = (dialect.images ? withImages : withoutImages)(messages).bytes()
    const systemJson = system && JSON.stringify({ role: 'system', content: system })
    const border = systemJson && list.length > 0 ? ',' : ''
    const before = `${JSON.stringify({ ...head, ...extra }).slice(0, -1)},"messages":[${systemJson}${border}`
    return Buffer.concat([Buffer.from(before), list, Buffer.from(']}')])
  }
}

function settingsOf(config: LlmConfig, dialect: Dialect, hasTools: boolean) {
  return {
    stream: true,
    ...(dialect.streamOptions && { stream_options: { include_usage: true } }),
    ...(config.max_output_tokens !== undefined && { [dialect.maxTokensField]: config.max_output_tokens }),
    // `undefined` is left out by JSON.stringify: what is unset is for the provider to decide.
    temperature: config.temperature,
    top_p: config.top_p,
    top_k: config.top_k,
    reasoning_effort: config.reasoning_effort,
    ...(hasTools && { tool_choice: config.tool_choice }),
  }
}

function toolBody({ name, description, inputSchema }: ModelTool) {
  return { type: 'function', function: { name, description, parameters: inputSchema } }
}

type Shown = { readonly withReasoning: boolean; readonly withImages: boolean }

/** The messages as the inside of a JSON list. Only those that are new since the last request are written, and encoded. */
function createMessagesWriter(shown: Shown): (messages: readonly ModelMessage[]) => GrowingBytes {
  return createGrownFold(createGrowingBytes, (list, message) => {
    list.append(`${list.isEmpty ? '' : ','}${JSON.stringify(messageBody(message, shown))}`)
    return list
  })
}

function messageBody(message: ModelMessage, { withReasoning, withImages }: Shown) {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: userContent(withImages ? message.content : message.content.map(withoutImage)) }
    case 'assistant':
      return {
        role: 'assistant',
        // Without calls an empty text stays a string: `null` is only allowed beside tool calls.
        content: message.text || (message.toolCalls.length > 0 ? null : ''),
        ...(withReasoning && message.reasoning && { reasoning_content: message.reasoning }),
        ...(message.toolCalls.length > 0 && { tool_calls: message.toolCalls.map(callBody) }),
      }
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
  }
}

/** Text alone goes as a string: many compatible servers know no content parts. */
function userContent(parts: readonly UserPart[]) {
  if (parts.every((part) => part.type === 'text')) return parts.map((part) => part.text).join('\n\n')
  return parts.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: `data:${part.media_type};base64,${part.data}` } },
  )
}

function withoutImage(part: UserPart): UserPart {
  if (part.type === 'text') return part
  return {
    type: 'text',
    text: `[An image (${part.media_type}) was here; it is left out, as this model cannot be shown images.]`,
  }
}

/**
 * A call as the model made it, as far as the next request may repeat it: endpoints refuse a history with a name of
 * other characters or arguments that are no JSON object, and then every later request of the conversation would fail.
 */
function callBody({ id, name, arguments: text }: ModelToolCall) {
  return {
    id,
    type: 'function',
    function: {
      name: name.slice(0, 64).replaceAll(/[^\w-]/g, '_') || 'unknown',
      arguments: parseJsonObject(text) ? text : JSON.stringify({ invalid_arguments: text }),
    },
  }
}

function withoutKeys(record: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))
}
