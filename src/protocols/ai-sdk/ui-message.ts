/** Makes of the chunks of an answer the message that a client has after them. Pure. */
import type { UiChunk, UiInputPart, UiTextKind } from './ui-chunk.ts'

type UiPart = { type: string; [field: string]: unknown }

/** A message as `useChat` takes it. */
export type UiMessageObject = {
  readonly id: string
  readonly role: 'assistant' | 'user'
  readonly metadata?: object
  readonly parts: readonly (UiInputPart | UiPart)[]
}

export class MessageBuilder {
  #id = ''
  #metadata: object = {}
  readonly #parts: UiPart[] = []
  readonly #texts = new Map<string, UiPart>()

  get message(): UiMessageObject {
    return { id: this.#id, role: 'assistant', metadata: this.#metadata, parts: this.#parts }
  }

  add(chunk: UiChunk): void {
    switch (chunk.type) {
      case 'start':
        this.#id = chunk.messageId
        this.#metadata = chunk.messageMetadata
        return
      case 'message-metadata':
      case 'finish':
        this.#metadata = { ...this.#metadata, ...chunk.messageMetadata }
        return
      case 'start-step':
        this.#parts.push({ type: 'step-start' })
        return
      case 'reset-step':
        this.#texts.clear()
        this.#parts.splice(this.#parts.findLastIndex(({ type }) => type === 'step-start') + 1)
        return
      case 'steering-message':
        this.#parts.push({ ...chunk })
        return
      case 'data-diff':
      case 'data-request':
        return this.#putData(chunk)
      case 'finish-step':
      case 'abort':
      case 'error':
        return
      default:
        if ('toolCallId' in chunk || chunk.type === 'tool-approval-response') this.#addToCall(chunk)
        else this.#addToText(chunk)
    }
  }

  #putData(chunk: Extract<UiChunk, { type: `data-${string}` }>): void {
    const earlier = this.#parts.find(({ type, id }) => type === chunk.type && id === chunk.id)
    if (earlier) earlier['data'] = chunk.data
    else this.#parts.push({ ...chunk })
  }

  #addToText(chunk: Extract<UiChunk, { type: `${UiTextKind}-${string}` }>): void {
    const type = chunk.type.startsWith('text') ? 'text' : 'reasoning'
    const part = this.#texts.get(chunk.id) ?? {
      type,
      ...(type === 'reasoning' && { id: chunk.id }),
      text: '',
      state: 'streaming',
    }
    if (!this.#texts.has(chunk.id)) this.#parts.push(part)
    this.#texts.set(chunk.id, part)
    if ('delta' in chunk) part['text'] = `${String(part['text'])}${chunk.delta}`
    if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') part['state'] = 'done'
  }

  #addToCall(chunk: Extract<UiChunk, { type: `tool-${string}` }>): void {
    if (chunk.type === 'tool-input-available') return this.#addCall(chunk)
    const part = this.#parts.find((each) =>
      'toolCallId' in chunk ? each['toolCallId'] === chunk.toolCallId : approvalIn(each)?.['id'] === chunk.approvalId,
    )
    if (!part) return
    switch (chunk.type) {
      case 'tool-approval-request':
        part['approval'] = { id: chunk.approvalId, requestReason: chunk.reason }
        part['state'] = 'approval-requested'
        return
      case 'tool-approval-response': {
        const { approved, reason } = chunk
        part['approval'] = { ...approvalIn(part), approved, ...(reason !== undefined && { reason }) }
        part['state'] = 'approval-responded'
        return
      }
      case 'tool-output-denied':
        part['state'] = 'output-denied'
        return
      case 'tool-output-error':
        part['errorText'] = chunk.errorText
        part['state'] = 'output-error'
        return
      case 'tool-output-available':
        part['output'] = chunk.output
        part['state'] = 'output-available'
        return
      default:
        chunk satisfies never
    }
  }

  #addCall({
    toolName,
    toolCallId,
    input,
    dynamic,
    providerExecuted,
  }: Extract<UiChunk, { type: 'tool-input-available' }>) {
    const state = 'input-available'
    const own = { toolCallId, state, input, ...(providerExecuted && { providerExecuted }) }
    this.#parts.push(dynamic ? { type: 'dynamic-tool', toolName, ...own } : { type: `tool-${toolName}`, ...own })
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this class writes it
const approvalIn = (part: UiPart) => part['approval'] as Record<string, unknown> | undefined
