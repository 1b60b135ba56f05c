/** What the `Task` tool needs of its conversation. */
import type { CallOutcome, ToolContext } from '../tool.ts'

export type TaskInput = {
  readonly description: string
  readonly prompt: string
  readonly subagent_type: string
  readonly run_in_background: boolean
  readonly resume?: string | undefined
}

export type TaskAccess = {
  /** The agents that can be called, for the model. The same text until they change. */
  readonly agents: () => string
  /** Rejects if an event could not be stored: the call stays open then, too. */
  readonly run: (input: TaskInput, context: Pick<ToolContext, 'toolUseId' | 'signal'>) => Promise<CallOutcome>
}
