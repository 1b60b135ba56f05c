/** Decides the events of a result that a client sends. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import type { Problem } from '../contract/problem.ts'
import { inRun, inSubagent } from './drafts.ts'
import { byKey } from './request-drafts.ts'
import { requestNotFound } from './request-problems.ts'
import type { State } from './state.ts'
import { callerOf } from './subagents.ts'

/** `output` is redacted. The call waits for a client. */
export type ToolResultIntent = {
  kind: 'tool_result'
  requestId: string
  toolUseId: string
  output: unknown
  isError: boolean
  keyName?: string | undefined
}

export function decideToolResult(
  state: State,
  { requestId, toolUseId, output, isError, keyName }: ToolResultIntent,
): EventDraft[] | Problem {
  const caller = callerOf(state, toolUseId)
  if (!caller && !state.openCalls.some((call) => call.toolUseId === toolUseId)) return requestNotFound()
  const result: EventDraft = {
    type: 'RequestAnswered',
    source: 'user',
    kind: 'client_tool',
    request_id: requestId,
    tool_use_ids: [toolUseId],
    answer: { output, is_error: isError },
    ...byKey(keyName),
  }
  return caller ? inSubagent([{ ...result, ...inRun(caller.agent) }], caller) : [{ ...result, ...inRun(state) }]
}
