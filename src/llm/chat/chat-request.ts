/**
 * The body of a Chat Completions request, as JSON text.
 *
 * Providers cache a prompt by its longest known prefix, and a cached token costs a tenth. So rarely changing parts come
 * first, and each request extends the previous one byte for byte: model, tools, then the messages. Each message is
 * serialised once, so a step of a long conversation does not process the whole history.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { withoutImage } from '../request/images.ts'
import { createIncrementalFold } from '../request/growing-bytes.ts'
import type { GrowingBytes } from '../request/growing-bytes.ts'
import { createGrowingBytes } from '../request/growing-bytes.ts'
import type { LlmRequest, ModelMessage, ModelTool } from '../llm.ts'
import type { ChatDialect } from './chat-dialect.ts'
import { wantsReasoningBack } from '../endpoints/models.ts'
import type { RequestWriter } from '../provider.ts'
import { jsonOf, systemOf, withoutKeys } from '../request/request-parts.ts'
import type { CallForm } from './chat-calls.ts'
import { callBodies, idFor, reasoningDetails } from './chat-calls.ts'

export function createRequestWriter(config: LlmConfig, model: string): RequestWriter<ChatDialect> {
  const withReasoning = wantsReasoningBack(model)
  const writers = new Map<string, MessagesWriter>()
  const writerFor = ({ images, alternates, callIds, callExtras }: ChatDialect) => {
    const name = `${images} ${alternates} ${callIds} ${callExtras}`
    const withImages = images && !config.disable_vision
    const knownWriter =
      writers.get(name) ??
      createMessagesWriter({ withReasoning, withImages, alternates, calls: { callIds, callExtras } })
    writers.set(name, knownWriter)
    return knownWriter
  }
  const headFor = createHeadWriter(config, model)
  return ({ system, instructions, messages, tools, outputSchema }, dialect) => {
    const list = writerFor(dialect)(messages)
    return list.between(headFor({ system, instructions, tools, outputSchema, dialect, isAlone: list.isEmpty }), TAIL)
  }
}

const TAIL = Buffer.from(']}')

type Head = Pick<LlmRequest, 'system' | 'instructions' | 'tools' | 'outputSchema'> & {
  readonly dialect: ChatDialect
  readonly isAlone: boolean
}

/** Writes all before the messages. It is the same in most requests, and tools have many kilobytes: so the last one is kept. */
function createHeadWriter(config: LlmConfig, model: string): (head: Head) => Buffer {
  const extra = withoutKeys(config.extra_body ?? {}, ['messages'])
  let last: { readonly head: Head; readonly bytes: Buffer } | undefined
  return (head) => {
    if (last && isSameHead(last.head, head)) return last.bytes
    const { tools, outputSchema, dialect, isAlone } = head
    const system = systemOf(head)
    const fields = {
      model,
      ...settingsOf(config, dialect, tools.length > 0),
      ...(dialect.schema && outputSchema && { response_format: formatOf(outputSchema) }),
      ...(tools.length > 0 && { tools: tools.map(toolBody) }),
    }
    const systemJson = system.trim() && jsonOf({ role: 'system', content: system })
    const border = systemJson && !isAlone ? ',' : ''
    const bytes = Buffer.from(`${jsonOf({ ...fields, ...extra }).slice(0, -1)},"messages":[${systemJson}${border}`)
    last = { head, bytes }
    return bytes
  }
}

const isSameHead = (a: Head, b: Head): boolean =>
  a.tools === b.tools &&
  a.system === b.system &&
  a.instructions === b.instructions &&
  a.outputSchema === b.outputSchema &&
  a.isAlone === b.isAlone &&
  a.dialect.schema === b.dialect.schema &&
  a.dialect.maxTokensField === b.dialect.maxTokensField &&
  a.dialect.streamOptions === b.dialect.streamOptions

function settingsOf(config: LlmConfig, dialect: ChatDialect, hasTools: boolean) {
  return {
    stream: true,
    ...(dialect.streamOptions && { stream_options: { include_usage: true } }),
    ...(config.max_output_tokens !== undefined && { [dialect.maxTokensField]: config.max_output_tokens }),
    // JSON.stringify omits `undefined`: the provider decides about unset values.
    temperature: config.temperature,
    top_p: config.top_p,
    top_k: config.top_k,
    reasoning_effort: config.reasoning_effort,
    ...(hasTools && { tool_choice: config.tool_choice }),
  }
}

/** Makes a format that is not strict: a strict one allows a part of JSON Schema only. */
function formatOf(schema: object) {
  return { type: 'json_schema', json_schema: { name: 'output', schema, strict: false } }
}

function toolBody({ name, description, inputSchema }: ModelTool) {
  return { type: 'function', function: { name, description, parameters: inputSchema } }
}

type ShownParts = { readonly withReasoning: boolean; readonly withImages: boolean; readonly calls: CallForm }
type MessagesWriter = (messages: readonly ModelMessage[]) => GrowingBytes
type WrittenMessages = { readonly list: GrowingBytes; readonly lastRole: ModelMessage['role'] | undefined }

/**
 * Returns the messages as the inside of a JSON list. Only messages since the last request are serialised and encoded.
 */
function createMessagesWriter({
  alternates,
  ...shownParts
}: ShownParts & Pick<ChatDialect, 'alternates'>): MessagesWriter {
  const write = (list: GrowingBytes, body: object) => list.append(`${list.isEmpty ? '' : ','}${jsonOf(body)}`)
  const begin = (): WrittenMessages => ({ list: createGrowingBytes(), lastRole: undefined })
  const fold = createIncrementalFold(begin, ({ list, lastRole }, message: ModelMessage) => {
    const isOutOfTurn = message.role === 'user' && (lastRole === 'user' || lastRole === 'tool')
    if (alternates && isOutOfTurn) write(list, ACKNOWLEDGEMENT)
    write(list, messageBody(message, shownParts))
    return { list, lastRole: message.role }
  })
  return (messages) => fold(messages).list
}

const ACKNOWLEDGEMENT = { role: 'assistant', content: 'OK.' }

function messageBody(message: ModelMessage, { withReasoning, withImages, calls }: ShownParts) {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: userContent(withImages ? message.content : message.content.map(withoutImage)) }
    case 'assistant':
      return {
        role: 'assistant',
        // `null` is only allowed with tool calls.
        content: message.text.trim() === '' && message.toolCalls.length > 0 ? null : message.text,
        reasoning_details: message.parts && reasoningDetails(message.parts, calls),
        ...(withReasoning && message.reasoning && { reasoning_content: message.reasoning }),
        ...(message.toolCalls.length > 0 && { tool_calls: callBodies(message, calls) }),
      }
    case 'tool':
      // The images of a result follow in a message of the user.
      return { role: 'tool', tool_call_id: idFor(message.toolCallId, calls), content: message.content }
  }
}

/** Sends plain text as a string: many compatible servers do not support content parts. */
function userContent(parts: readonly UserPart[]) {
  if (parts.every((part) => part.type === 'text')) return parts.map((part) => part.text).join('\n\n')
  return parts.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: `data:${part.media_type};base64,${part.data}` } },
  )
}
