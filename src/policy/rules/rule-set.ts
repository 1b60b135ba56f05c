/** The rules of a conversation, parsed once. */
import type { PermissionRules } from '../../contract/values/permission.ts'
import type { PolicyRule } from './rule.ts'
import { coarseRules, parseAllowRule, parseRule } from './rule.ts'
import { lazilyForEach } from '../../lib/lazily.ts'

export type RuleSet = {
  readonly allow: readonly PolicyRule[]
  readonly ask: readonly PolicyRule[]
  readonly deny: readonly PolicyRule[]
}

const NO_RULES: RuleSet = { allow: [], ask: [], deny: [] }

/** Never throws. Rules that cannot be read may be stored: see `readStrict`; one that allows has no effect. */
export const ruleSetOf = (rules: PermissionRules | undefined): RuleSet => (rules ? parseSet(rules) : NO_RULES)

const parseSet = lazilyForEach((rules: PermissionRules): RuleSet => {
  const [askRules, denyRules] = [readStrict(rules.ask), readStrict(rules.deny)]
  const allow = rules.allow.map(parseAllowRule).filter((rule) => typeof rule !== 'string')
  return { allow, ask: [...askRules.rules, ...askRules.instead, ...denyRules.instead], deny: denyRules.rules }
})

/** Rules that ask or deny. What one that cannot be read may be about is asked about: `instead` are these rules. */
export function readStrict(texts: readonly string[]): {
  readonly rules: readonly PolicyRule[]
  readonly instead: readonly PolicyRule[]
} {
  const rules = texts.map(parseRule)
  const unreadable = texts.filter((_, at) => typeof rules[at] === 'string')
  const instead = unreadable.flatMap(coarseRules).map(parseRule)
  const isRule = (rule: PolicyRule | string) => typeof rule !== 'string'
  return { rules: rules.filter(isRule), instead: instead.filter(isRule) }
}

/** The rules of a conversation, with those of other sources. */
export function joinedRules(
  own: PermissionRules | undefined,
  ...others: readonly (PermissionRules | undefined)[]
): RuleSet {
  const more = others.filter((each) => each !== undefined)
  // Nearly always: nothing is copied then.
  if (more.length === 0) return ruleSetOf(own)
  const sets = [own, ...more].map(ruleSetOf)
  return {
    allow: sets.flatMap(({ allow }) => allow),
    ask: sets.flatMap(({ ask }) => ask),
    deny: sets.flatMap(({ deny }) => deny),
  }
}

/** Returns a sentence for each invalid rule. */
export function faultsOf(rules: PermissionRules): string[] {
  const parsedRules = [...rules.allow.map(parseAllowRule), ...[...rules.ask, ...rules.deny].map(parseRule)]
  return parsedRules.filter((each) => typeof each === 'string')
}
