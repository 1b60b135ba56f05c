/** Decides the events of a result that a client sends. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import { inRun, inSubagent } from './drafts.ts'
import type { State } from './state.ts'
import { callerOf } from './subagents.ts'

/** `output` is redacted. The call waits for a client. */
export type ToolResultIntent = { kind: 'tool_result'; toolUseId: string; output: unknown; isError: boolean }

export function decideToolResult(
  state: State,
  { toolUseId, output, isError }: ToolResultIntent,
): EventDraft[] | Problem {
  const caller = callerOf(state, toolUseId)
  if (!caller && !state.openCalls.some((call) => call.toolUseId === toolUseId)) return toolCallNotFound()
  const result: EventDraft = {
    type: 'ClientToolResult',
    source: 'user',
    tool_use_id: toolUseId,
    output,
    is_error: isError,
  }
  return caller ? inSubagent([{ ...result, ...inRun(caller.agent) }], caller) : [{ ...result, ...inRun(state) }]
}

export const toolCallNotFound = () =>
  new Problem(
    'tool_call_not_found',
    'No call of a client tool has this id. Answer the tool_use_id of a ClientToolCall; GET tool-calls lists those that wait.',
  )
