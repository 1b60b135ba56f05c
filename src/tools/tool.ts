/** The seam to a tool (MCP form): how it describes itself, what it is given, what it may answer. */
import type { z } from 'zod'
import type { ToolErrorType } from '../contract/events/status.ts'
import type { ToolAccess } from '../policy/tool-access.ts'

export type ToolContext = {
  readonly conversationId: string
  readonly toolUseId: string
  readonly workdir: string
  /** Aborted when the call is to be ended now; the tool then ends everything it started and answers `interrupted`. */
  readonly signal: AbortSignal
  /** Shows output while the tool still runs, piece after piece; transient. */
  readonly onOutput: (stream: 'stdout' | 'stderr', text: string) => void
}

/** What a call came to. A failure is an outcome, never a throw. */
export type ToolOutcome = {
  /** By the tool's output schema, text, or a list of text and image parts: of those the model is shown the images too. */
  readonly output: unknown
  readonly error?: { readonly type: ToolErrorType; readonly message: string }
  readonly truncated?: boolean
  readonly fullOutputPath?: string
}

/**
 * One tool. `run` gets input that its schema has accepted. It may run for as long as its signal is quiet, must answer
 * soon after an abort, and leaves nothing of its own running but what the user asked to stay. A throw is a bug of
 * the tool: the caller turns it into a `failed` result.
 */
export interface Tool<Input = unknown> {
  readonly name: string
  readonly description: string
  readonly input: z.ZodType<Input>
  readonly output?: z.ZodType
  /** It touches nothing but the conversation's own log: nobody is asked about it. */
  readonly harmless?: boolean
  /** It changes nothing, and its calls do not depend on each other: those of one turn may run at the same time. */
  readonly readOnly?: boolean
  /** What a call would do, for the permission gate. Without it, and unless `harmless`: anything. Must not throw. */
  access?(input: Input): ToolAccess
  /** Calling it says that the work is done: the run ends after the turn, and its output, as the model reads it, is what the run says at its end. */
  readonly finishes?: boolean
  run(input: Input, context: ToolContext): Promise<ToolOutcome>
  /** The output as the model reads it; without it, text as it is and anything else as JSON. */
  render?(output: unknown): string
}
