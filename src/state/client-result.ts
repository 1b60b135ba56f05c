/**
 * What a client sent for a call, from the answer to the `ToolResult`. It is stored first and acknowledged; the
 * tool then ends with it, and hooks follow. After a crash in between it becomes the result.
 */
import type { ClientResult, ToolCall } from './tool-call.ts'
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import { outcomeOf } from './client-outcome.ts'

export function withClientResult(
  openCalls: readonly ToolCall[],
  { tool_use_ids, answer }: Extract<EventOf<'RequestAnswered'>, { kind: 'client_tool' }>,
): readonly ToolCall[] {
  const clientResult: ClientResult = { output: answer.output, isError: answer.is_error }
  return openCalls.map((call) => (tool_use_ids.includes(call.toolUseId) ? { ...call, clientResult } : call))
}

/** After a crash between the result of a client and that of its call. */
export function resultFromClient({
  toolUseId,
  runId,
  input,
  isChanged,
  changedBy,
  clientResult,
}: ToolCall): EventDraft | undefined {
  if (!clientResult) return undefined
  const { output, error, truncated } = outcomeOf(clientResult)
  return {
    type: 'ToolResult',
    source: 'environment',
    ...(runId !== undefined && { run_id: runId }),
    tool_use_id: toolUseId,
    ...(isChanged && { ran_input: input, ...(changedBy && { changed_by: changedBy }) }),
    output,
    is_error: error !== undefined,
    ...(error && { error_type: error.type, error_message: error.message }),
    duration_ms: 0,
    ...(truncated && { truncated: true }),
  }
}
