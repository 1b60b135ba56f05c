/** The error that every failure of a model endpoint becomes. */
import type { ErrorType } from '../../contract/events/status.ts'
import type { LlmAnswer } from '../llm.ts'

type LlmErrorOptions = Partial<Pick<LlmError, 'retryable' | 'lacksTools' | 'isUnauthorized'>> & {
  readonly partial?: LlmAnswer | undefined
  readonly cause?: unknown
}

/** A failure of the provider, classified; `message` is safe to show: it contains no key and no request body. */
export class LlmError extends Error {
  readonly type: ErrorType
  readonly retryable: boolean
  /** The text of the last attempt when its stream broke; its tool calls never run. */
  readonly partial: LlmAnswer | undefined
  /** The model does not support tools: the same request without them may succeed. */
  readonly lacksTools: boolean
  /** The endpoint does not accept the key (401): another one may be accepted. */
  readonly isUnauthorized: boolean

  constructor(type: ErrorType, message: string, options: LlmErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'LlmError'
    this.type = type
    this.retryable = options.retryable ?? false
    this.partial = options.partial
    this.lacksTools = options.lacksTools ?? false
    this.isUnauthorized = options.isUnauthorized ?? false
  }
}
