/**
 * The decision about one call. The only file that orders hooks, modes and rules: hooks, deny rules, ask rules, the mode,
 * allow rules. The strictest wins. Pure, except for the links that `Places` follows.
 */
import { MAX_RULE_TEXT_CHARS } from '../contract/values/permission.ts'
import type { Question } from './gated-call.ts'
import type { GateRules, HookVerdict } from './rules/gate-rules.ts'
import { matchRule } from './match-rule.ts'
import type { Need } from './needs.ts'
import { needsOf } from './needs.ts'
import type { PolicyRule } from './rules/rule.ts'
import { parseAllowRule } from './rules/rule.ts'

/** `rules` would allow it the next time; absent when rules cannot say so. */
export type GateDecision =
  | { readonly behavior: 'allow' }
  | { readonly behavior: 'deny'; readonly reason: string }
  | { readonly behavior: 'ask'; readonly reason: string; readonly rules?: readonly string[] }

const ALLOW: GateDecision = { behavior: 'allow' }

/** `approved`: somebody has allowed this call with this input. Only a hook or a deny rule stops it then. */
export function decide(
  question: Question,
  rules: GateRules,
  { approved, hook }: { readonly approved: boolean; readonly hook?: HookVerdict | undefined },
): GateDecision {
  if (hook?.decision === 'deny') return { behavior: 'deny', reason: `A hook denied it${because(hook)}` }
  const deniedBy = findMatch(rules.rules.deny, question)
  if (deniedBy.certain) return { behavior: 'deny', reason: `The rule ${deniedBy.certain.text} denies it.` }
  if (approved) return ALLOW
  const askReason = deniedBy.possible
    ? `it is not certain that the deny rule ${deniedBy.possible.text} does not hold for it`
    : (reasonForRequest(question, rules) ??
      (hook?.decision === 'ask'
        ? `a hook asks about it${hook.reason === undefined ? '' : `: ${hook.reason}`}`
        : undefined))
  if (rules.mode === 'bypass' && !rules.confirmation) return askReason === undefined ? ALLOW : ask(askReason)
  const needs = needsOf(question, rules)
  const change = rules.mode === 'plan' ? (changeOf(question, rules) ?? doubtAbout(question)) : undefined
  if (change)
    return {
      behavior: 'deny',
      reason: `The mode is plan, and it ${change.reason}. Only reading is possible in this mode.`,
    }
  const isFree = question.action.kind === 'none'
  const reason =
    askReason ??
    (rules.confirmation && !isFree ? 'confirmation_mode is on' : undefined) ??
    (hook?.decision === 'allow' ? undefined : needs[0] && `it ${needs[0].reason}`)
  if (reason === undefined) return ALLOW
  if (rules.mode === 'deny' || (rules.mode === 'callback' && !rules.hasApprover))
    return { behavior: 'deny', reason: denialIn(rules.mode, reason) }
  return ask(reason, askReason === undefined && !rules.confirmation ? needs.map(({ rule }) => rule) : undefined)
}

const because = ({ reason }: HookVerdict) => (reason === undefined ? '.' : `: ${reason}`)

/** No rule allows a change in a mode that only reads. */
function changeOf(question: Question, rules: GateRules): Need | undefined {
  return needsOf(question, { ...rules, rules: { ...rules.rules, allow: [] } }).find(({ changes }) => changes)
}

const NO_RULES: GateRules = { mode: 'plan', confirmation: false, rules: { allow: [], ask: [], deny: [] } }

/** True unless it is certain that the call only reads. */
export const changesSomething = (question: Question): boolean =>
  (changeOf(question, NO_RULES) ?? doubtAbout(question)) !== undefined

/** What is not compared with all rules may be anything. */
function doubtAbout({ places }: Question): Need | undefined {
  return places.effort.isSpent ? { reason: 'is too long to be compared with the rules', changes: true } : undefined
}

function denialIn(mode: 'deny' | 'callback', reason: string): string {
  const why = mode === 'deny' ? 'The mode is deny' : 'The mode is callback and there is no approver'
  return `${why}, and the call needs a permission: ${reason}.`
}

function ask(reason: string, rules?: readonly (string | undefined)[]): GateDecision {
  const knownRules = rules?.filter((rule) => rule !== undefined) ?? []
  const isWhole =
    rules !== undefined && knownRules.length === rules.length && knownRules.length > 0 && knownRules.every(isRule)
  return { behavior: 'ask', reason, ...(isWhole && { rules: [...new Set(knownRules)] }) }
}

const isRule = (text: string) => text.length <= MAX_RULE_TEXT_CHARS && typeof parseAllowRule(text) !== 'string'

function reasonForRequest(question: Question, { rules }: GateRules): string | undefined {
  const { certain, possible } = findMatch(rules.ask, question)
  if (certain) return `the rule ${certain.text} asks about it`
  return possible && `it is not certain that the ask rule ${possible.text} does not hold for it`
}

function findMatch(
  rules: readonly PolicyRule[],
  question: Question,
): { readonly certain?: PolicyRule; readonly possible?: PolicyRule } {
  let possible: PolicyRule | undefined
  for (const rule of rules) {
    const match = matchRule(rule, question)
    if (match === 'yes') return { certain: rule }
    if (match === 'maybe') possible ??= rule
    if (question.places.effort.isSpent) return { possible: possible ?? rule }
  }
  return possible ? { possible } : {}
}
