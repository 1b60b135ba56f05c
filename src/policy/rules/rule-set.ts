/** The rules of a conversation, parsed once. */
import type { PermissionRules } from '../../contract/permission.ts'
import type { PolicyRule } from './rule.ts'
import { parseRule } from './rule.ts'

export type RuleSet = {
  readonly allow: readonly PolicyRule[]
  readonly ask: readonly PolicyRule[]
  readonly deny: readonly PolicyRule[]
}

const NO_RULES: RuleSet = { allow: [], ask: [], deny: [] }

const parsed = new WeakMap<PermissionRules, RuleSet>()

/** Throws for an invalid rule: an unreadable rule must not be skipped. */
export function ruleSetOf(rules: PermissionRules | undefined): RuleSet {
  if (!rules) return NO_RULES
  let set = parsed.get(rules)
  if (!set)
    parsed.set(rules, (set = { allow: rules.allow.map(parse), ask: rules.ask.map(parse), deny: rules.deny.map(parse) }))
  return set
}

/**
 * The rules of a conversation, with those of its project, those that are granted for a time, and those of its MCP
 * servers.
 */
export function joinedRules(
  own: PermissionRules | undefined,
  project: PermissionRules | undefined,
  granted: PermissionRules | undefined,
  servers?: PermissionRules,
): RuleSet {
  // Nearly always: nothing is copied then.
  if (!project && !granted && !servers) return ruleSetOf(own)
  const sets = [own, project, granted, servers].map(ruleSetOf)
  return {
    allow: sets.flatMap(({ allow }) => allow),
    ask: sets.flatMap(({ ask }) => ask),
    deny: sets.flatMap(({ deny }) => deny),
  }
}

/** Returns a sentence for each invalid rule. */
export function faultsOf(rules: PermissionRules): string[] {
  return [...rules.allow, ...rules.ask, ...rules.deny].map(parseRule).filter((each) => typeof each === 'string')
}

function parse(text: string): PolicyRule {
  const rule = parseRule(text)
  if (typeof rule === 'string') throw new TypeError(rule)
  return rule
}
