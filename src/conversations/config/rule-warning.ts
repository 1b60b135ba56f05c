/** Warns of rules that have no effect: they allow what the mode `bypass` allows, or deny a tool that does not exist. */
import type { CreateConversation } from '../../contract/conversation.ts'
import type { PermissionRules } from '../../contract/values/permission.ts'
import { isServerTool } from '../client-tools/check-client-tools.ts'

export const ruleWarning = (request: CreateConversation): string[] => [...ofAllowed(request), ...ofUnknown(request)]

function ofAllowed({ permission_mode = 'bypass', permission_rules, allowed_tools }: CreateConversation): string[] {
  const count = (permission_rules?.allow.length ?? 0) + (allowed_tools?.length ?? 0)
  if (count === 0 || permission_mode !== 'bypass') return []
  return [
    'The allow rules have no effect in the mode bypass; set permission_mode to default to be asked about the rest.',
  ]
}

/** A warning with more names is not read. */
const MAX_NAMES = 5

function ofUnknown({ permission_rules: rules, disallowed_tools: deniedTools = [], client_tools }: CreateConversation) {
  return unknownToolsWarning({ ask: rules?.ask ?? [], deny: [...(rules?.deny ?? []), ...deniedTools] }, client_tools)
}

/** Returns at most one warning. A misspelt name would let run what it was to prevent. */
export function unknownToolsWarning(
  { ask, deny }: Pick<PermissionRules, 'ask' | 'deny'>,
  clientTools: readonly { readonly name: string }[] = [],
): string[] {
  const names = [...ask, ...deny].map((rule) => rule.trim().split('(', 1)[0] ?? '')
  const isKnown = (name: string) =>
    name === '*' || name.startsWith('mcp__') || isServerTool(name) || clientTools.some((tool) => tool.name === name)
  const unknownNames = [...new Set(names.filter((name) => !isKnown(name)))].slice(0, MAX_NAMES)
  return unknownNames.length === 0
    ? []
    : [`The rules for ${unknownNames.join(', ')} stop nothing: there is no such tool.`]
}
