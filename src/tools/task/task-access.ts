/** What the `Task` tool needs of its conversation. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { ToolContext } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'

export type TaskInput = {
  readonly description: string
  readonly prompt: string
  readonly subagent_type: string
  readonly run_in_background: boolean
  readonly resume?: string | undefined
}

/**
 * The outcome of a call of a subagent. `staysOpen`: the call has no result yet, as its run waits or was paused; the next
 * run continues it. `events` are stored together with the result.
 */
export type TaskOutcome = ToolOutcome & { readonly staysOpen?: true; readonly events?: readonly EventDraft[] }

export type TaskAccess = {
  /** The agents that can be called, for the model. The same text until they change. */
  readonly agents: () => string
  /** Rejects if an event could not be stored: the call stays open then, too. */
  readonly run: (input: TaskInput, context: Pick<ToolContext, 'toolUseId' | 'signal'>) => Promise<TaskOutcome>
}
