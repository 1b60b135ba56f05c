/** What the agent loop asks hooks, for a conversation that has some. */
import type { AskedToolUse } from '../contract/values/permission.ts'
import type { LlmAnswer, LlmRequest, ModelMessage } from '../llm/llm.ts'
import type { LlmError } from '../llm/errors/llm-error.ts'
import type { HookDecisions } from '../state/hook-decisions.ts'

/**
 * All methods reject with the signal's reason when it is aborted, and otherwise only if an event could not be stored.
 * `true`: a hook ends the run.
 */
export interface LoopHooks {
  /** Called when the loop begins. */
  begin(signal: AbortSignal): Promise<boolean>
  /** Called before calls begin; their verdicts are in the state afterwards. */
  beforeCalls(signal: AbortSignal): Promise<boolean>
  /** False if the configuration has changed since `beforeCalls`, which must be called again then. */
  areCurrent(): boolean
  /** Called when all calls of a turn have a result, before the next model request. */
  afterCalls(signal: AbortSignal): Promise<boolean>
  /** True once after a hook that followed a call has ended the run. */
  takeEnd(): boolean
  /** Calls that are missing in the result wait for a user. */
  approve(calls: readonly AskedToolUse[], signal: AbortSignal): Promise<HookDecisions | 'end'>
  /**
   * Returns the messages to send instead, if they were rewritten; `request` is what would be sent. Throws an `LlmError`
   * if a hook blocks it.
   */
  beforeModel(
    model: string,
    request: () => Pick<LlmRequest, 'system' | 'messages'>,
    signal: AbortSignal,
  ): Promise<readonly ModelMessage[] | undefined>
  /** True if a hook has a say in what is stored of an answer. */
  judgesAnswers(): boolean
  /** Returns the answer to store. Throws an `LlmError` if a hook blocks it. */
  afterModel(answer: LlmAnswer, signal: AbortSignal): Promise<LlmAnswer>
  /** Called when the agent has finished by itself. Returns true if the run continues. */
  beforeStop(signal: AbortSignal): Promise<boolean>
  /** Called when the run ends because a model request has failed. */
  afterFailure(error: LlmError, signal: AbortSignal): Promise<void>
}
