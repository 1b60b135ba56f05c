/**
 * Estimates the tokens of a request: what the model reported with its last answer, and an estimate for everything that
 * was added since.
 */
import type { Usage } from '../../contract/values/message.ts'
import type { ModelMessage, ModelTool } from '../../llm/llm.ts'

/** Bytes of UTF-8 per token. English text has about 4.5, code 3, Chinese 3 to 4. */
const BYTES_PER_TOKEN = 4

/** The tokens of the role, and of what separates messages. */
const TOKENS_PER_MESSAGE = 4

/** A large image at the usual models. Its bytes say nothing about its tokens. */
const TOKENS_PER_IMAGE = 1600

/** How far the estimate may be corrected by what the model reported. */
const [MIN_SCALE, MAX_SCALE] = [0.5, 4]

/**
 * What a report of the model may differ from the estimate by: a proxy may count all requests together, or leave out what
 * was cached. A prompt and tools are not part of the estimate, and rarely larger than that.
 */
const [MIN_PLAUSIBLE_PART, MAX_PLAUSIBLE_PART, MAX_FIXED_TOKENS] = [0.2, 5, 200_000]

export const tokensOfText = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)

export const tokensOfMessage = (message: ModelMessage): number => tokensOfWords(message) + tokensOfImages(message)

const tokensOfImages = (message: ModelMessage): number =>
  message.role === 'user' ? message.content.filter(({ type }) => type === 'image').length * TOKENS_PER_IMAGE : 0

function tokensOfWords(message: ModelMessage): number {
  switch (message.role) {
    case 'user':
      return message.content.reduce(
        (sum, part) => sum + (part.type === 'text' ? tokensOfText(part.text) : 0),
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
  /** The estimated tokens of the words of the first messages, and the number of these. */
  #words = 0
  #wordsOf = 0

  /** The model has read and written these messages. `unread` of the last ones were not in its request. */
  measured(usage: Usage, messages: readonly ModelMessage[], unreadMessages: readonly ModelMessage[]): void {
    if (!this.#isPlausible(usage.input_tokens, messages, unreadMessages)) return
    const later = unreadMessages.reduce((sum, message) => sum + tokensOfMessage(message), 0)
    // Reasoning is not part of the next request at most endpoints.
    const answerTokens = Math.max(0, usage.output_tokens - usage.reasoning_tokens)
    this.#tokens = usage.input_tokens + answerTokens + Math.round(later * this.#scale)
    this.#counted = messages.length
    this.#isMeasured = true
  }

  /** False for an endpoint that reports nothing, or something else. The answer is the last message. */
  #isPlausible(
    reportedTokens: number,
    messages: readonly ModelMessage[],
    unreadMessages: readonly ModelMessage[],
  ): boolean {
    for (const message of messages.slice(this.#wordsOf)) this.#words += tokensOfWords(message)
    this.#wordsOf = messages.length
    const others = [...messages.slice(-1), ...unreadMessages]
    const sentTokens = this.#words - others.reduce((sum, message) => sum + tokensOfWords(message), 0)
    return (
      reportedTokens > sentTokens * MIN_PLAUSIBLE_PART &&
      reportedTokens < sentTokens * MAX_PLAUSIBLE_PART + MAX_FIXED_TOKENS
    )
  }

  /** Returns the tokens of a request with these messages. `fixed` are the tokens of its prompt and tools. */
  of(messages: readonly ModelMessage[], fixedTokens: () => number): number {
    for (; this.#counted < messages.length; this.#counted++) {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- below the length
      this.#tokens += this.scaled(tokensOfMessage(messages[this.#counted]!))
    }
    return this.#isMeasured ? this.#tokens : this.#tokens + this.scaled(fixedTokens())
  }

  /** The message at this place is no longer sent. */
  removed(message: ModelMessage, at: number): void {
    if (at < this.#counted) {
      this.#counted--
      this.#tokens -= this.scaled(tokensOfMessage(message))
    }
    if (at < this.#wordsOf) {
      this.#wordsOf--
      this.#words -= tokensOfWords(message)
    }
  }

  /** Corrects an estimate by what the model reported earlier. */
  scaled(tokens: number): number {
    return Math.ceil(tokens * this.#scale)
  }

  /** The messages are about to be replaced by others: from here on they are estimated, until the model reports again. */
  forget(messages: readonly ModelMessage[], fixedTokens: () => number): void {
    if (this.#isMeasured) {
      const estimate = messages.reduce((sum, message) => sum + tokensOfMessage(message), fixedTokens())
      this.#scale = Math.min(Math.max(this.of(messages, fixedTokens) / Math.max(estimate, 1), MIN_SCALE), MAX_SCALE)
    }
    this.#tokens = 0
    this.#counted = 0
    this.#words = 0
    this.#wordsOf = 0
    this.#isMeasured = false
  }
}
