/** The permission rules of one conversation: shown, and replaced as a whole. */
import type { PermissionRules, PermissionRulesView } from '../../contract/values/permission.ts'
import { Problem } from '../../contract/problem.ts'
import { faultsOf } from '../../policy/rules/rule-set.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'
import { canonicalName } from '../../tools/registry.ts'
import { unknownToolsWarning } from './rule-warning.ts'
import type { LiveState } from '../live/live-state.ts'
import type { Inbox } from '../live/inbox.ts'

export const NO_RULES: PermissionRules = { allow: [], ask: [], deny: [] }

export class ConversationRules {
  readonly #state: LiveState
  readonly #actor: Pick<Inbox, 'configure'>
  readonly #redact: (text: string) => string

  constructor(parts: {
    readonly state: LiveState
    readonly actor: Pick<Inbox, 'configure'>
    readonly redact: (text: string) => string
  }) {
    this.#state = parts.state
    this.#actor = parts.actor
    this.#redact = parts.redact
  }

  get current(): PermissionRulesView {
    const { permission_rules: rules = NO_RULES, project_settings: project } = this.#state.current.settings
    return project ? { ...rules, project: project.permission_rules } : rules
  }

  /** Holds for every call that has not begun, except that a call that waits still needs its decision. */
  async replace(givenRules: PermissionRules): Promise<PermissionRulesView> {
    const rules = checkRules('permission_rules', givenRules, this.#redact)
    await this.#actor.configure(async () => ({ changes: { permission_rules: rules } }))
    const warnings = unknownToolsWarning(rules, this.#state.current.settings.client_tools)
    return { ...this.current, ...(warnings.length > 0 && { warnings }) }
  }
}

/**
 * The rules under the names that tools have here. Throws a `Problem`, which names the field, for a text that is not a rule, or has
 * a secret.
 */
export function checkRules(
  field: 'permission_rules' | 'allowed_tools' | 'disallowed_tools',
  givenRules: Partial<PermissionRules>,
  redact: (text: string) => string,
): PermissionRules {
  const { allow, ask, deny } = { ...NO_RULES, ...givenRules }
  refuseSecretsIn({ [field]: [allow, ask, deny] }, redact)
  const canonicalRules = (texts: readonly string[]) => [...new Set(texts.map((text) => canonicalRule(text.trim())))]
  const rules = {
    allow: canonicalRules(allow),
    ask: canonicalRules(ask),
    deny: canonicalRules(deny),
  }
  const faults = faultsOf(rules)
  if (faults.length > 0) throw new Problem('invalid_request', `${field}: ${faults.slice(0, 5).join(' ')}`)
  return rules
}

/** `execute_bash(rm:*)` is the rule `Bash(rm:*)`. */
export function canonicalRule(text: string): string {
  const end = text.indexOf('(')
  const name = end < 0 ? text : text.slice(0, end)
  return `${canonicalName(name)}${end < 0 ? '' : text.slice(end)}`
}
