/** How the agent loop ended. */
import type { ErrorType, StopReason } from '../contract/events/status.ts'

export type LoopEnd = {
  readonly stopReason: StopReason
  /** The text of the Finish call; without it, the agent's last message is the final text. */
  readonly finalText?: string
  /** What has changed in the workdir during the run, if that is known. */
  readonly changes?: { readonly files: number; readonly added: number; readonly removed: number }
  /** The final text as JSON, valid for the output schema of the run. */
  readonly structuredOutput?: unknown
  readonly failure?: { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }
}
