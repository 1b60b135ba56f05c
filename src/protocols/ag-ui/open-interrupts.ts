/** What a run waits for, in the form of AG-UI. Pure. */
import type { TurnRequests } from '../items/turn-requests.ts'
import type { AgUiInterrupt } from './interrupts.ts'
import { interruptsOf, isInterrupt } from './interrupts.ts'

/** `subagentOf`: the invocation that a `Task` call has begun. */
export function openInterrupts(
  waiting: TurnRequests,
  subagentOf: (parent: string) => string | undefined,
): AgUiInterrupt[] {
  return waiting.list().flatMap(({ request, calls }) => {
    const { parent_tool_use_id: parent } = request
    const subagentRunId = parent === undefined ? undefined : subagentOf(parent)
    return isInterrupt(request) ? interruptsOf(request, calls, subagentRunId) : []
  })
}

/** The calls of frontend tools. */
export function pendingToolCallIds(waiting: TurnRequests): string[] {
  return waiting.list().flatMap(({ request, calls }) => (request.kind === 'client_tool' ? [...calls] : []))
}
