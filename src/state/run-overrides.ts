/** What one run has instead of the settings of the conversation. */
import type { EventOf } from '../contract/events/event.ts'
import type { PermissionMode } from '../contract/values/permission.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { RunOverrides, State, Subagent } from './state-shape.ts'
import { detachedOf } from './subagents.ts'

export type OverriddenRun = Pick<State, 'run' | 'lastRun'>

/** Returns what the active run has instead of the settings of the conversation. */
export const overridesOf = ({ run, lastRun }: OverriddenRun): RunOverrides | undefined =>
  run && run.id === lastRun?.id ? lastRun.overrides : undefined

export const modeOf = (state: OverriddenRun & Pick<State, 'settings'>): PermissionMode =>
  overridesOf(state)?.permissionMode ?? state.settings.permission_mode ?? 'bypass'

/** The state for a subagent: what a run may do, and its model, are not for one in the background of another run. */
export function stateInRunOf(state: State, subagent: Subagent): State {
  const { lastRun, run, settings } = state
  const detachedSubagent = lastRun?.overrides && detachedOf(state, subagent)
  if (!lastRun || !detachedSubagent || detachedSubagent.agent.run?.id === run?.id) return state
  return {
    ...state,
    lastRun: { ...lastRun, overrides: lastRun.overrides && restrictionsOf(lastRun.overrides, settings) },
  }
}

/** Returns what the first event of a run says. */
export function overridesIn(event: EventOf<'StatusUpdate'>): { readonly overrides?: RunOverrides } {
  const { model, permission_mode: permissionMode, allowed_tools: allow, instructions } = event
  const { temperature, max_output_tokens, reasoning_effort } = event
  const anyOfSampling = temperature ?? max_output_tokens ?? reasoning_effort
  if ((model ?? permissionMode ?? allow ?? instructions ?? anyOfSampling) === undefined) return {}
  const rules = allow && { allowed: { allow, ask: [], deny: [] } }
  const sampling = withoutUndefined({ temperature, max_output_tokens, reasoning_effort })
  const ofModel = { model, ...(anyOfSampling !== undefined && { sampling }) }
  return { overrides: { ...ofModel, permissionMode, ...rules, instructions } }
}

/** The modes from the one that allows least to the one that allows most. */
const MODES: readonly PermissionMode[] = ['plan', 'deny', 'callback', 'default', 'accept_edits', 'bypass']

export const stricterOf = (one: PermissionMode, other: PermissionMode): PermissionMode =>
  MODES.find((each) => each === one || each === other) ?? one

/**
 * A later change of the conversation takes precedence, also during the run: somebody may have taken rights back. A change of
 * the rules does not end a stricter mode: the run would do what it was not to do.
 */
export function afterChange(
  { lastRun, settings }: Pick<State, 'lastRun' | 'settings'>,
  changes: Readonly<Record<string, unknown>>,
): State['lastRun'] {
  if (!lastRun?.overrides) return lastRun
  const { model, sampling, instructions, ...rights } = lastRun.overrides
  const keptRights = 'permission_rules' in changes ? restrictionsOf(rights, settings) : rights
  const remainingRights = 'permission_mode' in changes ? {} : keptRights
  const ofModel = 'llm_config' in changes ? {} : { model, sampling }
  return { ...lastRun, overrides: { ...remainingRights, ...ofModel, instructions } }
}

/** The rights of a run are for those who write during the run: a run that follows by itself reads what came later, too. */
export function afterMessage({ lastRun, settings, status }: State): State['lastRun'] {
  if (!lastRun?.overrides || readsMessages({ status })) return lastRun
  const { model, sampling, instructions, ...rights } = lastRun.overrides
  return { ...lastRun, overrides: { model, sampling, instructions, ...restrictionsOf(rights, settings) } }
}

/** The run reads the message. It also does while a client executes a call, so that no result of a client is lost. */
export const readsMessages = ({ status }: Pick<State, 'status'>): boolean =>
  status === 'running' || status === 'waiting_for_client'

/** Returns what allows less than the settings of the conversation do. */
function restrictionsOf({ permissionMode: mode }: RunOverrides, settings: State['settings']): RunOverrides {
  const own = settings.permission_mode ?? 'bypass'
  return mode && stricterOf(mode, own) === mode ? { permissionMode: mode } : {}
}
