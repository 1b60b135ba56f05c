/** Decides the events of intents about subagents. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import { inRun, isAwake, mayFollow, startToRead } from './drafts.ts'
import type { PermissionMode } from '../contract/values/permission.ts'
import type { State } from './state.ts'
import { afterMessage, overridesOf, stricterOf } from './run-overrides.ts'
import { findSubagent } from './subagents.ts'

type StartDraft = Extract<EventDraft, { type: 'SubagentStart' }>

export type NewSubagent = Omit<StartDraft, 'type' | 'source' | 'run_id'>

/** A call begins to work with a subagent. */
export type StartSubagentIntent = { kind: 'start_subagent'; subagent: NewSubagent }

/** Subagents of a conversation that have not ended. */
export const MAX_OPEN = 32

/** Returns nothing if the call has its result meanwhile, or if others have begun since it was planned. */
export function decideStartSubagent(state: State, { subagent }: StartSubagentIntent): EventDraft[] {
  const { parent_tool_use_id: id } = subagent
  const isOpen = [state, ...state.subagents.map(({ agent }) => agent)].some(({ openCalls }) =>
    openCalls.some(({ toolUseId }) => toolUseId === id),
  )
  const isTaken = state.subagents.some((each) => each.agentId === subagent.agent_id)
  if (!isOpen || isTaken || findSubagent(state, id) || state.subagents.length >= MAX_OPEN) return []
  return [
    { type: 'SubagentStart', source: 'environment', ...inRun(state), ...subagent, ...modeBeyondRun(state, subagent) },
  ]
}

/** A subagent in the background outlives the run, and does not get more rights by that. */
function modeBeyondRun(
  state: State,
  { background, permission_mode }: NewSubagent,
): { permission_mode?: PermissionMode } {
  const mode = background ? overridesOf(state)?.permissionMode : undefined
  if (mode === undefined) return {}
  return { permission_mode: permission_mode ? stricterOf(mode, permission_mode) : mode }
}

/** A subagent in the background has ended: `events` are those of its end. `newRunId` is for the run that reads its result. */
export type EndBackgroundIntent = {
  kind: 'end_background'
  toolUseId: string
  events: readonly EventDraft[]
  newRunId: string
}

const waiting = (draft: EventDraft): EventDraft =>
  draft.type === 'Result' && draft.background_agent_id !== undefined ? { ...draft, waits_for_user: true } : draft

/** An active run reads the result before it ends, and a run starts if none is active. What a hook has ended starts nothing. */
export function decideEndBackground(state: State, { toolUseId, events, newRunId }: EndBackgroundIntent): EventDraft[] {
  const subagent = findSubagent(state, toolUseId)
  if (!subagent) return []
  const isEndedByHook = events.some((event) => event.type === 'Result' && event.stop_reason === 'hook')
  if (!isAwake(state.status) || isEndedByHook) return [...events]
  if (!mayFollow(state)) return events.map(waiting)
  const isOfLast = subagent.agent.run?.id === state.lastRun?.id
  return [...events, startToRead(isOfLast ? state : { ...state, lastRun: afterMessage(state) }, newRunId)]
}
