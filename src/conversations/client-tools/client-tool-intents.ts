/** Decides the events of a result that a client sends. Pure. */
import type { EventDraft } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import { inRun } from '../state/drafts.ts'
import type { State } from '../state/state.ts'

/** `output` is redacted. The call waits for a client. */
export type ToolResultIntent = { kind: 'tool_result'; toolUseId: string; output: unknown; isError: boolean }

export function decideToolResult(
  state: State,
  { toolUseId, output, isError }: ToolResultIntent,
): EventDraft[] | Problem {
  if (!state.openCalls.some((call) => call.toolUseId === toolUseId)) return toolCallNotFound()
  return [
    { type: 'ClientToolResult', source: 'user', ...inRun(state), tool_use_id: toolUseId, output, is_error: isError },
  ]
}

export const toolCallNotFound = () =>
  new Problem(
    'tool_call_not_found',
    'No call of a client tool has this id. Answer the tool_use_id of a ClientToolCall; GET tool-calls lists those that wait.',
  )
