/** What the calls of an agent need to be allowed by: of a subagent, also by the rules of all agents above it. */
import type { GateRules } from '../policy/rules/gate-rules.ts'
import { readStrict } from '../policy/rules/rule-set.ts'
import { stateInRunOf } from './run-overrides.ts'
import type { State, Subagent } from './state-shape.ts'
import { rulesOf } from './state.ts'
import { findSubagent } from './subagents.ts'

/** One set for the conversation, and one for each subagent on the way that has its own mode or rules. */
export function rulesOfAgent(state: State, toolUseId: string | undefined): readonly GateRules[] {
  const chain = chainOf(state, toolUseId)
  const [own] = chain
  const main = rulesOf(own ? stateInRunOf(state, own) : state)
  return [main, ...chain.flatMap((subagent) => stricter(main, subagent))]
}

function chainOf(state: State, toolUseId: string | undefined): Subagent[] {
  const subagent = toolUseId === undefined ? undefined : findSubagent(state, toolUseId)
  return subagent ? [subagent, ...chainOf(state, subagent.callerId)] : []
}

function stricter(main: GateRules, { mode, deny }: Subagent): GateRules[] {
  if (!mode && deny.length === 0) return []
  const own = readStrict(deny)
  const { allow, ask } = main.rules
  const rules = { allow, ask: [...ask, ...own.instead], deny: [...main.rules.deny, ...own.rules] }
  return [{ ...main, mode: mode ?? main.mode, rules }]
}
