/** How the agent loop ended. */
import type { AskedToolUse } from '../contract/values/permission.ts'
import type { HookDecisions } from '../state/hook-decisions.ts'
import type { QuestionCall } from '../state/question-intents.ts'
import type { ErrorType, StopReason } from '../contract/events/status.ts'

export type LoopEnd = {
  readonly stopReason: StopReason
  /** The text of the Finish call; without it, the agent's last message is the final text. */
  readonly finalText?: string
  /** What has changed in the workdir during the run, if that is known. */
  readonly changes?: { readonly files: number; readonly added: number; readonly removed: number }
  /** True if a snapshot of the workdir could not be taken. */
  readonly snapshotFailed?: boolean
  /** The final text as JSON, valid for the output schema of the run. */
  readonly structuredOutput?: unknown
  readonly failure?: { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }
}

/**
 * The loop stops here until these calls are decided, or these questions answered. Hooks may have decided some or all of
 * the calls.
 */
export type LoopWait =
  | { readonly permissionCalls: readonly AskedToolUse[]; readonly hooked?: HookDecisions }
  | { readonly questionCalls: readonly QuestionCall[] }
  | { readonly waitsOutside: true }
