/** What hooks did to the open calls and to the run, as a pure fold. */
import type { ToolCall } from './tool-call.ts'
import type { EventOf } from '../contract/events/event.ts'
import type { HookVerdict } from '../policy/rules/gate-rules.ts'
import type { PermissionAnswered } from './open-permission.ts'
import type { Run } from './run-state.ts'

type HookedTurn = {
  readonly openCalls: readonly ToolCall[]
  readonly run: Run | undefined
  readonly hooksAt: number
  readonly answered: unknown
}

export function afterHook<S extends HookedTurn>(state: S, event: EventOf<'HookEvent'>): S {
  if (event.hook_point === 'Stop' || event.hook_point === 'SubagentStop')
    return event.action === 'block' ? countBlockedStop(state) : state
  if (event.hook_point !== 'PreToolUse') return state
  // The change of the hooks was stored just before the verdict of the former ones.
  if ((event.hooks_seq ?? 0) < state.hooksAt) return state
  const openCalls = state.openCalls.map((call) => (call.toolUseId === event.tool_use_id ? afterPre(call, event) : call))
  return { ...state, openCalls }
}

/** Other hooks decide about the calls that are open: they have not said anything yet. */
export const withoutVerdicts = (calls: readonly ToolCall[]): readonly ToolCall[] =>
  calls.some((call) => call.hook) ? calls.map(withoutVerdict) : calls

/** Hooks have not said anything about the new input yet. */
export function withInput(call: ToolCall, input: unknown, by: PermissionAnswered['answered_by']): ToolCall {
  const { changedBy: _, ...rest } = withoutVerdict(call)
  const changedBy = by === 'hook' ? { changedBy: 'hook' as const } : {}
  return { ...rest, input, isChanged: true, ...changedBy }
}

function withoutVerdict(call: ToolCall): ToolCall {
  const { hook: _, ...rest } = call
  return rest
}

function countBlockedStop<S extends HookedTurn>(state: S): S {
  const { run } = state
  // The agent continues.
  const next = { ...state, answered: undefined }
  return run ? { ...next, run: { ...run, blockedStops: (run.blockedStops ?? 0) + 1 } } : next
}

function afterPre(call: ToolCall, { decision, message, context, updated_input }: EventOf<'HookEvent'>): ToolCall {
  const hook = mergeVerdicts(call.hook, { decision, reason: message, context })
  if (updated_input === undefined) return { ...call, hook }
  return { ...call, hook, input: updated_input, isChanged: true, changedBy: 'hook' }
}

const STRICTNESS = { allow: 1, ask: 2, deny: 3 }

/** The strictest decision wins; of equal ones the first. */
function mergeVerdicts(before: HookVerdict | undefined, next: HookVerdict): HookVerdict {
  const isStricter = strictnessOf(next) > strictnessOf(before)
  const { decision, reason } = isStricter ? next : (before ?? { decision: undefined, reason: undefined })
  const context = [before?.context, next.context].filter((text) => text !== undefined).join('\n')
  return {
    ...(decision !== undefined && { decision }),
    ...(decision !== undefined && reason !== undefined && { reason }),
    ...(context && { context }),
  }
}

const strictnessOf = (verdict: HookVerdict | undefined) => (verdict?.decision ? STRICTNESS[verdict.decision] : 0)
