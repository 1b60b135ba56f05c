/** The interface of a tool (MCP form): its description, its input, and its outcomes. */
import type { z } from 'zod'
import type { EventDraft } from '../contract/events/event.ts'
import type { OpenRequestOf } from '../contract/request.ts'
import type { HeldKind } from '../contract/requests/request-kinds.ts'
import type { AskedQuestion } from '../contract/values/question.ts'
import type { StoredAnswerOf } from '../state/held-intents.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import type { ToolAccess } from '../policy/tool-access.ts'

/** What a call asks somebody outside while it runs. Questions of one request have different texts. */
export type OutsideRequest<K extends HeldKind> = {
  readonly kind: K
  readonly toolUseId: string
  readonly payload: OpenRequestOf<K>['payload']
  readonly signal: AbortSignal
}

/**
 * `staysOpen`: the call has no result yet; its run waits or was paused, and calls the tool again. `events` are stored
 * together with the result.
 */
export type CallOutcome = ToolOutcome & { readonly staysOpen?: true; readonly events?: readonly EventDraft[] }

/** The next run, or this one when it continues, calls the tool again. */
export const STAYS_OPEN: CallOutcome = { output: '', staysOpen: true }

export type ToolContext = {
  readonly conversationId: string
  readonly toolUseId: string
  readonly workdir: string
  /** The definition that a user was asked about, if the call needed that. */
  readonly approvedDefinition?: string | undefined
  /** Aborted when the call must end now; the tool then ends everything it started and returns `interrupted`. */
  readonly signal: AbortSignal
  /**
   * Opens a request of a kind that calls hold. The status stays `running`. Resolves to undefined when nobody will answer any
   * more: the signal was aborted, or the conversation ends.
   */
  readonly openRequest: <K extends HeldKind>(request: OutsideRequest<K>) => Promise<StoredAnswerOf<K> | undefined>
  /** Shows output while the tool is still running, piece by piece; transient. */
  readonly onOutput: (stream: 'stdout' | 'stderr', text: string) => void
}

/**
 * One tool. `run` receives input that its schema has accepted. It may run until its signal is aborted, must return soon
 * after that, and leaves no process running except those that the user asked to keep. A throw is a bug of the tool: the
 * caller turns it into a `failed` result.
 */
export interface Tool<Input = unknown> {
  readonly name: string
  readonly description: string
  readonly input: z.ZodType<Input>
  /** JSON Schema that models are shown instead of that of `input`. */
  readonly inputSchema?: object
  readonly output?: z.ZodType
  /** The hash of the definition of a tool that may change: `run` refuses a call that was approved with another one. */
  readonly definitionHash?: string
  /** It affects only the conversation's own log: no approval is needed. */
  readonly harmless?: boolean
  /** It changes nothing, and its calls do not depend on each other: those of one turn may run in parallel. */
  readonly readOnly?: boolean
  /** What a call would do, for the permission gate. Without it, and unless `harmless`: anything. Must not throw. */
  access?(input: Input): ToolAccess
  /** Its calls of one turn run in parallel. An error that it throws is rethrown. */
  readonly callsSubagent?: boolean
  /**
   * Calling it declares that the work is done: the run ends after the turn, and its output, as rendered for the model,
   * is the run's final text.
   */
  readonly finishes?: boolean
  /**
   * The call is a question to the user: the answer becomes its result, and `run` is not called. The questions have
   * different texts. Must not throw.
   */
  questions?(input: Input): readonly AskedQuestion[]
  run(input: Input, context: ToolContext): Promise<CallOutcome>
  /** The input with a time limit of at most so many seconds. Without it, a call that takes too long is aborted. */
  withTimeout?(input: Input, seconds: number): Input
  /** Shortens the texts of an output. Without it: text, or the text parts of a list. */
  cutOutput?(output: unknown, cut: (text: string) => Promise<string>): Promise<unknown>
  /** Renders the output for the model; by default text is unchanged and anything else becomes JSON. */
  render?(output: unknown): string
}
