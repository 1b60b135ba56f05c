/**
 * Calls that clients execute: which wait, and what a client sent. A result of a client is stored and acknowledged
 * first; the run then stores the `ToolResult`, after its hooks.
 */
import type { ClientResult, ToolCall } from './tool-call.ts'
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import { outcomeOf } from './client-outcome.ts'
import type { AgentState, State } from './state-shape.ts'

type EndedToolRequest = Extract<EventOf<'RequestAnswered'>, { kind: 'client_tool' }> | EventOf<'RequestClosed'>
type Agent = Pick<AgentState, 'openCalls'> & Pick<State, 'requests'>

/** The answer, and a deadline that has passed, end the call with the next step of its run. */
export function withClientResult(openCalls: readonly ToolCall[], event: EndedToolRequest): readonly ToolCall[] {
  const clientResult = resultIn(event)
  if (!clientResult) return openCalls
  return openCalls.map((call) => (event.tool_use_ids.includes(call.toolUseId) ? { ...call, clientResult } : call))
}

function resultIn(event: EndedToolRequest): ClientResult | undefined {
  if (event.type === 'RequestClosed') return event.reason === 'timeout' ? 'timeout' : undefined
  return { output: event.answer.output, isError: event.answer.is_error }
}

/** True if a client executes the call, or has executed it: it must not begin again. */
export const isHandedOver = ({ requests }: Pick<State, 'requests'>, call: ToolCall): boolean =>
  call.clientResult !== undefined || isWaited(requests, call)

/** True if the agent cannot continue before a client sends the result of a call. */
export const waitsForClient = ({ openCalls, requests }: Agent): boolean =>
  openCalls.some((call) => isWaited(requests, call))

const isWaited = (requests: State['requests'], { toolUseId }: ToolCall) =>
  requests.some(({ kind, tool_use_ids }) => kind === 'client_tool' && tool_use_ids.includes(toolUseId))

/** The result of a call whose run does not store it any more. */
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
