/**
 * Estimates the tokens of a request: what the model reported with its last answer, and an estimate for everything that
 * was added since.
 */
import type { Usage } from '../../contract/message.ts'
import type { ModelMessage, ModelTool } from '../../llm/llm.ts'

/** Bytes of UTF-8 per token. English text has about 4.5, code 3, Chinese 3 to 4. */
const BYTES_PER_TOKEN = 4

/** For the role, and what separates messages. */
const TOKENS_PER_MESSAGE = 4

/** A large image at the usual models. Its bytes say nothing about its tokens. */
const TOKENS_PER_IMAGE = 1600

/** How far the estimate may be corrected by what the model reported. */
const [MIN_SCALE, MAX_SCALE] = [0.5, 4]

export const tokensOfText = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)

export function tokensOfMessage(message: ModelMessage): number {
  switch (message.role) {
    case 'user':
      return message.content.reduce(
        (sum, part) => sum + (part.type === 'text' ? tokensOfText(part.text) : TOKENS_PER_IMAGE),
        TOKENS_PER_MESSAGE,
      )
    case 'assistant':
      return message.toolCalls.reduce(
        (sum, call) => sum + tokensOfText(call.arguments) + tokensOfText(call.name) + TOKENS_PER_MESSAGE,
        TOKENS_PER_MESSAGE + tokensOfText(message.text),
      )
    case 'tool':
      return TOKENS_PER_MESSAGE + tokensOfText(message.content)
  }
}

export function tokensOfTools(tools: readonly ModelTool[]): number {
  return tools.length > 0 ? tokensOfText(JSON.stringify(tools)) : 0
}

/** Counts only what was added since the last call, so that a step of a long conversation does not read all of it. */
export class ContextSize {
  #tokens = 0
  /** Number of messages that `#tokens` includes. */
  #counted = 0
  /** Whether `#tokens` comes from the model. It then includes the prompt and the tools. */
  #isMeasured = false
  #scale = 1

  /** The model has read and written these messages. `unread` of the last ones were not in its request. */
  measured(usage: Usage, messages: readonly ModelMessage[], unread: readonly ModelMessage[]): void {
    if (usage.input_tokens === 0) return // the endpoint reports nothing
    const later = unread.reduce((sum, message) => sum + tokensOfMessage(message), 0)
    // Reasoning is not part of the next request at most endpoints.
    const said = Math.max(0, usage.output_tokens - usage.reasoning_tokens)
    this.#tokens = usage.input_tokens + said + Math.round(later * this.#scale)
    this.#counted = messages.length
    this.#isMeasured = true
  }

  /** Returns the tokens of a request with these messages. `fixed` are the tokens of its prompt and tools. */
  of(messages: readonly ModelMessage[], fixed: () => number): number {
    for (; this.#counted < messages.length; this.#counted++) {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- below the length
      this.#tokens += this.scaled(tokensOfMessage(messages[this.#counted]!))
    }
    return this.#isMeasured ? this.#tokens : this.#tokens + this.scaled(fixed())
  }

  /** The message at this place is no longer sent. */
  removed(message: ModelMessage, at: number): void {
    if (at >= this.#counted) return
    this.#counted--
    this.#tokens -= this.scaled(tokensOfMessage(message))
  }

  /** Corrects an estimate by what the model reported earlier. */
  scaled(tokens: number): number {
    return Math.ceil(tokens * this.#scale)
  }

  /** The messages are about to be replaced by others: from here on they are estimated, until the model reports again. */
  forget(messages: readonly ModelMessage[], fixed: () => number): void {
    if (this.#isMeasured) {
      const estimate = messages.reduce((sum, message) => sum + tokensOfMessage(message), fixed())
      this.#scale = Math.min(Math.max(this.of(messages, fixed) / Math.max(estimate, 1), MIN_SCALE), MAX_SCALE)
    }
    this.#tokens = 0
    this.#counted = 0
    this.#isMeasured = false
  }
}
