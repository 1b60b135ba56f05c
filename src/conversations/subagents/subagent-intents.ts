/** Decides the events of intents about subagents. Pure. */
import type { EventDraft } from '../../contract/events/event.ts'
import { inRun } from '../state/drafts.ts'
import type { State } from '../state/state.ts'
import { findSubagent } from '../state/subagents.ts'

type StartDraft = Extract<EventDraft, { type: 'SubagentStart' }>

export type NewSubagent = Omit<StartDraft, 'type' | 'source' | 'run_id'>

/** A call begins to work with a subagent. */
export type StartSubagentIntent = { kind: 'start_subagent'; subagent: NewSubagent }

/** Returns nothing if the call has its result meanwhile: what it would start would belong to nobody. */
export function decideStartSubagent(state: State, { subagent }: StartSubagentIntent): EventDraft[] {
  const { parent_tool_use_id: id } = subagent
  const isOpen = [state, ...state.subagents.map(({ agent }) => agent)].some(({ openCalls }) =>
    openCalls.some(({ toolUseId }) => toolUseId === id),
  )
  if (!isOpen || findSubagent(state, id)) return []
  return [{ type: 'SubagentStart', source: 'environment', ...inRun(state), ...subagent }]
}
