/** Begins the subagent of a `Task` call: stores its start, unless it has begun in an earlier run. */
import { findSubagent } from '../../state/subagents.ts'
import type { Subagent } from '../../state/state-shape.ts'
import type { TaskInput } from '../../tools/task/task-access.ts'
import type { LiveState } from '../live/live-state.ts'
import { applyEnqueued } from './apply-in-turn.ts'
import { planSubagent } from './plan-subagent.ts'
import type { SubagentStarts } from './subagent-starts.ts'
import type { IntentInbox } from '../live/inbox.ts'

export type BeginDeps = {
  readonly starts: SubagentStarts
  readonly state: LiveState
  readonly actor: () => IntentInbox
}

type TaskCall = { readonly toolUseId: string; readonly callerId: string | undefined }

/** Returns why it cannot begin as `fault`. Rejects if its start could not be stored, or with the signal's reason. */
export async function beginSubagent(
  { starts, state, actor }: BeginDeps,
  call: TaskCall,
  input: TaskInput,
  signal: AbortSignal,
): Promise<Subagent | { readonly fault: string }> {
  const knownSubagent = findSubagent(state.current, call.toolUseId)
  if (knownSubagent) return knownSubagent
  const plannedSubagent = await planSubagent(starts, state.current, call, input)
  if ('fault' in plannedSubagent) return plannedSubagent
  await applyEnqueued(actor(), { kind: 'start_subagent', subagent: plannedSubagent }, signal)
  const begunSubagent = findSubagent(state.current, call.toolUseId)
  if (begunSubagent) return begunSubagent
  // Others have begun since it was planned.
  const again = await planSubagent(starts, state.current, call, input)
  return 'fault' in again ? again : { fault: 'The call has its result already.' }
}
