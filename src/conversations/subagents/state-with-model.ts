/** The state of a subagent, with the configuration of its model. */
import type { State, Subagent } from '../../state/state-shape.ts'
import { stateInRunOf } from '../../state/run-overrides.ts'
import { stateOf } from '../../state/subagents.ts'
import { inRun, withModel } from '../agents/with-model.ts'

export function stateWithModel(main: State, subagent: Subagent): State {
  const state = stateOf(inRun(stateInRunOf(main, subagent)), subagent)
  return subagent.model === undefined ? state : withModel(state, subagent.model)
}
