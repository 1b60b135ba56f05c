/** The state of a subagent, with the configuration of its model. */
import type { State, Subagent } from '../../state/state-shape.ts'
import { stateOf } from '../../state/subagents.ts'
import { inRun, withModel } from '../agents/with-model.ts'

export function stateWithModel(main: State, subagent: Subagent): State {
  const state = stateOf(inRun(main), subagent)
  return subagent.model === undefined ? state : withModel(state, subagent.model)
}
