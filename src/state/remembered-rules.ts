/** What `remember` adds to the permission rules. It holds for later calls: those that wait still need their decision. */
import type { EventDraft } from '../contract/events/event.ts'
import type { ToolDecision } from '../contract/values/permission.ts'
import { MAX_RULES } from '../contract/values/permission.ts'
import { Problem } from '../contract/problem.ts'
import type { State } from './state.ts'
import type { OpenPermission, StoredDecision } from './open-permission.ts'

/** `made` are the decisions that are new: one that comes again adds nothing. */
export function rememberedRules(
  { settings }: State,
  request: OpenPermission,
  decisions: readonly ToolDecision[],
  storedDecisions: readonly StoredDecision[],
): EventDraft[] | Problem {
  const rules = { allow: [], ask: [], deny: [], ...settings.permission_rules }
  const isNew = (id: string) => storedDecisions.some(({ tool_use_id }) => tool_use_id === id)
  const wantedDecisions = decisions.filter(({ remember, tool_use_id }) => remember && isNew(tool_use_id))
  if (wantedDecisions.length === 0) return []
  const addedRules = { allow: [...rules.allow], deny: [...rules.deny] }
  for (const { tool_use_id, behavior, updated_input } of wantedDecisions) {
    const call = request.calls.find(({ toolUseId }) => toolUseId === tool_use_id)
    // The rules are for the call as it was shown.
    if (!call?.rules || updated_input !== undefined) return notRememberable()
    addedRules[behavior].push(...call.rules)
  }
  const permission_rules = { ...rules, allow: [...new Set(addedRules.allow)], deny: [...new Set(addedRules.deny)] }
  if (permission_rules.allow.length > MAX_RULES || permission_rules.deny.length > MAX_RULES) return tooMany()
  return [{ type: 'ConfigUpdate', source: 'user', changes: { permission_rules } }]
}

const notRememberable = () =>
  new Problem(
    'invalid_request',
    'remember: no rule says exactly what this call does. Decide without remember, or write a rule with PUT permission-rules.',
  )

const tooMany = () =>
  new Problem(
    'limit_reached',
    `A conversation has at most ${MAX_RULES} rules of each kind; remove some with PUT permission-rules.`,
  )
