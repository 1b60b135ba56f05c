/** The interface to a language model: the agent's request and the answer. */
import type { ErrorType } from '../contract/events/status.ts'
import type { AssistantPart, ImagePart, Usage, UserPart } from '../contract/values/message.ts'

/** One message of the request, vendor-neutral. Every tool call is followed by exactly one `tool` message. */
export type ModelMessage =
  | {
      readonly role: 'user'
      readonly content: readonly UserPart[]
      /** These are the images of the tool results before it, for APIs whose tool results are text only. */
      readonly repeatsImages?: true
    }
  | {
      readonly role: 'assistant'
      readonly text: string
      readonly toolCalls: readonly ModelToolCall[]
      /** Sent back only to models that need it; without it they lose their context. */
      readonly reasoning?: string
      /** Text and reasoning in their order; only if a provider wants its reasoning back unchanged. */
      readonly parts?: readonly AssistantPart[]
    }
  | {
      readonly role: 'tool'
      readonly toolCallId: string
      readonly content: string
      readonly images?: readonly ImagePart[]
      readonly isError?: true
    }

/** `arguments` is the JSON text as the model wrote it, so that a request repeats it byte for byte. */
export type ModelToolCall = { readonly id: string; readonly name: string; readonly arguments: string }

/** A tool as the model sees it; `inputSchema` is JSON Schema (MCP form). */
export type ModelTool = { readonly name: string; readonly description: string; readonly inputSchema: object }

/** Ids of calls. Some vendors count from `call_0` in every answer; ids must be unique in a conversation. */
export type TakenIds = Pick<ReadonlySet<string>, 'has'>

export type LlmRequest = {
  readonly system: string
  /** Follow `system`. They change more often: what precedes them can stay in the cache of the provider. */
  readonly instructions?: string | undefined
  /** Append-only within a conversation: an implementation may cache its form of a message by identity. */
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
  /** JSON Schema of the final answer. Only a hint: the messages ask for it as well, and the answer is validated. */
  readonly outputSchema?: object | undefined
  /** Ids that no call of the answer may have: such a call gets a new one. Default: the ids in the messages. */
  readonly takenIds?: TakenIds
}

/** A piece of the answer. `index` numbers the parts of one kind: 0 for text and reasoning, the call for tool input. */
export type LlmPiece =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  /** `id` is the call's id in the answer; `name` is empty until it is the name of a tool of the request. */
  | {
      readonly kind: 'tool_input'
      readonly index: number
      readonly id: string
      readonly name: string
      readonly text: string
    }

/** The attempt failed and is retried after a wait: discard the pieces so far. */
export type LlmRetry = {
  readonly kind: 'retry'
  /** Why it failed; `message` is safe to show. */
  readonly type: ErrorType
  readonly message: string
  /** The number of the next retry, from 1, and the maximum. */
  readonly retry: number
  readonly maxRetries: number
  readonly waitMs: number
  /** The model of the next attempt, if it is another one. */
  readonly nextModel?: string
}

export type LlmDelta = LlmPiece | LlmRetry

export type LlmAnswer = {
  readonly text: string
  readonly reasoning: string
  /** Text and reasoning in their order; only if the provider wants its reasoning back unchanged. */
  readonly parts?: readonly AssistantPart[]
  /** Complete calls only: a call with incomplete arguments is left out. Ids are unique within the answer. */
  readonly toolCalls: readonly ModelToolCall[]
  readonly usage: Usage
  readonly costUsd: number | undefined
  /** The provider's finish reason; `unknown` if there was none. */
  readonly stopReason: string
  readonly model: string
  /** The name of its API. */
  readonly provider?: string
}

/**
 * A language model behind one configuration.
 *
 * `stream` yields the deltas of each part in order and returns the whole answer. It throws an `LlmError` for every
 * failure of the provider, and the signal's reason when aborted; if that is an `Interrupt` and the answer has a text, a
 * `CutAnswer`. It retries temporary failures itself, and yields an `LlmRetry` before each wait. Ending the iteration
 * early or aborting closes the connection. Calls are independent of each other.
 */
export interface Llm {
  readonly model: string
  stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<LlmDelta, LlmAnswer>
}

/** The answer of an `Llm`, from its beginning. */
export type AnswerStream = Pick<AsyncGenerator<LlmDelta, LlmAnswer>, 'next' | 'return'>

/** Ends an answer that is not read to its end. One that has ended stays as it is. */
export function leaveAnswer(stream: AnswerStream): Promise<unknown> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the generator ends; nobody reads the value
  return stream.return(undefined as never)
}

/** The reason of an abort by somebody who wants the text so far. */
export class Interrupt extends Error {}

/** An answer that an `Interrupt` ended: `partial` has its text, and no calls. */
export class CutAnswer extends Error {
  readonly partial: LlmAnswer

  constructor(partial: LlmAnswer) {
    super('The answer was interrupted.')
    this.partial = partial
  }
}
