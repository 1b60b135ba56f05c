/**
 * The body of a request to OpenAI's Responses API, as JSON text. As with Chat Completions, each request extends the
 * previous one byte for byte, and each message is serialised once.
 *
 * The provider stores nothing: the reasoning of earlier answers is sent back encrypted.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { AssistantPart, ImagePart, UserPart } from '../../contract/values/message.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { GrowingBytes } from '../request/growing-bytes.ts'
import { createGrowingBytes } from '../request/growing-bytes.ts'
import { withoutImage } from '../request/images.ts'
import { createKeptHead } from '../request/kept-head.ts'
import { createIncrementalFold } from '../request/growing-bytes.ts'
import type { LlmRequest, ModelMessage, ModelTool, ModelToolCall } from '../llm.ts'
import type { RequestWriter } from '../provider.ts'
import { indexAfter } from '../request/refused-reasoning.ts'
import { argumentsJson, callIdFor, jsonOf, systemOf, toolNameFor, withoutKeys } from '../request/request-parts.ts'
import type { ResponsesDialect } from './responses-dialect.ts'

export function createRequestWriter(config: LlmConfig, { model }: Endpoint): RequestWriter<ResponsesDialect> {
  const writers = new Map<string, InputWriter>()
  const writerFor = (dialect: ResponsesDialect, messages: readonly ModelMessage[]) => {
    const reasoningFrom = indexAfter(messages, dialect.refusedReasoning)
    const shownParts = { withImages: dialect.images && !config.disable_vision, reasoningFrom }
    const name = JSON.stringify(shownParts)
    const knownWriter = writers.get(name) ?? createInputWriter(shownParts)
    writers.set(name, knownWriter)
    return knownWriter
  }
  const extra = withoutKeys(config.extra_body ?? {}, ['input'])
  const headFor = createKeptHead()
  const headOf = ({ tools, outputSchema, ...prompt }: LlmRequest, dialect: ResponsesDialect) => {
    const system = systemOf(prompt)
    const head = jsonOf({
      model,
      ...settingsOf(config, dialect, tools.length > 0),
      ...(dialect.schema && outputSchema && { text: { format: formatOf(outputSchema) } }),
      ...(tools.length > 0 && { tools: tools.map(toolBody) }),
      ...(system.trim() && { instructions: system }),
      ...extra,
    })
    return `${head.slice(0, -1)},"input":[`
  }
  return (request, dialect) => {
    const head = headFor(request, JSON.stringify(dialect), () => headOf(request, dialect))
    return writerFor(dialect, request.messages)(request.messages).between(head, TAIL)
  }
}

const TAIL = Buffer.from(']}')

function settingsOf(config: LlmConfig, dialect: ResponsesDialect, hasTools: boolean) {
  const { reasoning_effort: effort } = config
  return {
    stream: true,
    store: false,
    ...(dialect.encrypted && { include: ['reasoning.encrypted_content'] }),
    // JSON.stringify omits `undefined`: the provider decides about unset values.
    max_output_tokens: config.max_output_tokens,
    temperature: config.temperature,
    top_p: config.top_p,
    top_k: config.top_k,
    ...((effort ?? dialect.summary) && { reasoning: { effort, ...(dialect.summary && { summary: 'auto' }) } }),
    ...(hasTools && { tool_choice: config.tool_choice }),
  }
}

/** Makes a format that is not strict: a strict one allows a part of JSON Schema only. */
function formatOf(schema: object) {
  return { type: 'json_schema', name: 'output', schema, strict: false }
}

/** `strict` is the default of the API, and refuses most schemas. */
function toolBody({ name, description, inputSchema }: ModelTool) {
  return { type: 'function', name, description, parameters: inputSchema, strict: false }
}

type ShownParts = { readonly withImages: boolean; readonly reasoningFrom: number }
type InputWriter = (messages: readonly ModelMessage[]) => GrowingBytes
type WrittenItems = { readonly list: GrowingBytes; readonly count: number }

/** Returns the messages as the inside of a JSON list of items. */
function createInputWriter({ withImages, reasoningFrom }: ShownParts): InputWriter {
  const begin = (): WrittenItems => ({ list: createGrowingBytes(), count: 0 })
  const fold = createIncrementalFold(begin, ({ list, count }, message: ModelMessage): WrittenItems => {
    const items = itemsOf(message, withImages, count >= reasoningFrom)
    for (const item of items) list.append(`${list.isEmpty ? '' : ','}${jsonOf(item)}`)
    return { list, count: count + 1 }
  })
  return (messages) => fold(messages).list
}

function itemsOf(message: ModelMessage, withImages: boolean, withReasoning: boolean): object[] {
  switch (message.role) {
    case 'user':
      if (message.repeatsImages) return []
      return [{ type: 'message', role: 'user', content: message.content.map((part) => inputPart(part, withImages)) }]
    case 'assistant':
      return answerItems(message, withReasoning)
    case 'tool': {
      const { toolCallId, content, images = [] } = message
      return [
        { type: 'function_call_output', call_id: callIdFor(toolCallId), output: outputOf(content, images, withImages) },
      ]
    }
  }
}

function outputOf(content: string, images: readonly ImagePart[], withImages: boolean): unknown {
  if (images.length === 0) return content
  return [{ type: 'input_text', text: content }, ...images.map((image) => inputPart(image, withImages))]
}

function inputPart(part: UserPart, withImages: boolean): object {
  const shownPart = withImages ? part : withoutImage(part)
  if (shownPart.type === 'text') return { type: 'input_text', text: shownPart.text }
  return { type: 'input_image', detail: 'auto', image_url: `data:${shownPart.media_type};base64,${shownPart.data}` }
}

type Answer = Extract<ModelMessage, { role: 'assistant' }>

/** Reasoning stays before the item that it led to: the API refuses it in any other place. */
function answerItems({ text, toolCalls, parts }: Answer, withReasoning: boolean): Item[] {
  const calls = toolCalls.map(callItem)
  if (!parts) return [...textItems(text), ...calls]
  const items: Item[] = []
  let calledCount = 0
  let summary: string[] = []
  for (const part of parts) {
    if (part.type === 'text') {
      items.push(...textItems(part.text, part.phase))
      continue
    }
    summary.push(part.text)
    // The parts of one item end with the one that has its data.
    if (!part.provider_data) continue
    if (withReasoning && part.provider_data.provider === 'openai_responses') {
      const before = part.calls_before ?? 0
      items.push(...calls.slice(calledCount, before), reasoningItem(part.provider_data, summary))
      calledCount = Math.max(calledCount, before)
    }
    summary = []
  }
  items.push(...calls.slice(calledCount))
  // The API refuses reasoning that nothing follows.
  while (items.at(-1)?.type === 'reasoning') items.pop()
  return items
}

type Item = { readonly type: string; readonly [field: string]: unknown }
type Reasoning = NonNullable<Extract<AssistantPart, { type: 'reasoning' }>['provider_data']>

function reasoningItem({ id, data }: Reasoning, summary: readonly string[]): Item {
  const texts = summary.filter((text) => text !== '').map((text) => ({ type: 'summary_text', text }))
  return { type: 'reasoning', id, summary: texts, encrypted_content: data }
}

function textItems(text: string, phase?: string) {
  if (text.trim() === '') return []
  return [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }], phase }]
}

function callItem({ id, name, arguments: text }: ModelToolCall): Item {
  return { type: 'function_call', call_id: callIdFor(id), name: toolNameFor(name), arguments: argumentsJson(text) }
}
