/** A tool call of the model, and its result. */
import type { FileEdit } from '../contract/events/file-edit.ts'
import type { ToolErrorType } from '../contract/events/status.ts'
import type { HookVerdict } from '../policy/rules/gate-rules.ts'

/** A call as logged; `input` is a string if the model sent no JSON object. */
export type ToolCall = {
  readonly toolUseId: string
  readonly name: string
  readonly input: unknown
  readonly runId: string | undefined
  /** The input comes from a decision or a hook, not from the model. */
  readonly isChanged?: boolean
  /** Absent: a user changed it. */
  readonly changedBy?: 'hook' | undefined
  /** What `PreToolUse` hooks said about it. Absent before they were called, or if there are none for it. */
  readonly hook?: HookVerdict | undefined
  /** The definition of its tool that a user was asked about. */
  readonly approvedDefinition?: string | undefined
  /** What a client has sent for it, or that none has in time. The result follows. */
  readonly clientResult?: ClientResult | undefined
}

export type ClientResult = { readonly output: unknown; readonly isError: boolean } | 'timeout'

/** The outcome of a call. A failure is an outcome, never a throw. */
export type ToolOutcome = {
  /**
   * The output by the tool's output schema, text, or a list of text and image parts: the model is also shown the images
   * of such a list.
   */
  readonly output: unknown
  readonly error?: { readonly type: ToolErrorType; readonly message: string }
  readonly truncated?: boolean
  readonly fullOutputPath?: string
  /** What an editing tool has changed, redacted. */
  readonly changes?: readonly FileEdit[]
}

/** Returns the outcome of a call that has failed: the model reads the message as its output. */
export const failure = (type: ToolErrorType, message: string) => ({ output: message, error: { type, message } })
