/** What one run has instead of the settings of the conversation. */
import type { EventOf } from '../contract/events/event.ts'
import type { PermissionMode } from '../contract/permission.ts'
import type { RunOverrides, State } from './state-shape.ts'

export type Overridden = Pick<State, 'run' | 'lastRun'>

/** What the active run has instead of the settings of the conversation. */
export const overridesOf = ({ run, lastRun }: Overridden): RunOverrides | undefined =>
  run && run.id === lastRun?.id ? lastRun.overrides : undefined

export const modeOf = (state: Overridden & Pick<State, 'settings'>): PermissionMode =>
  overridesOf(state)?.permissionMode ?? state.settings.permission_mode ?? 'bypass'

/** Returns what the first event of a run says. */
export function overridesIn({ model, permission_mode: permissionMode, allowed_tools: allow }: EventOf<'StatusUpdate'>) {
  if (model === undefined && permissionMode === undefined && allow === undefined) return {}
  return { overrides: { model, permissionMode, ...(allow && { allowed: { allow, ask: [], deny: [] } }) } }
}

/** A later change of the conversation takes precedence, also during the run: somebody may have taken rights back. */
export function afterChange(lastRun: State['lastRun'], changes: Readonly<Record<string, unknown>>): State['lastRun'] {
  if (!lastRun?.overrides) return lastRun
  const { model, ...granted } = lastRun.overrides
  const changesModel = 'llm_config' in changes
  const changesRights = 'permission_mode' in changes || 'permission_rules' in changes
  if (!changesModel && !changesRights) return lastRun
  return { ...lastRun, overrides: { ...(!changesModel && { model }), ...(!changesRights && granted) } }
}
