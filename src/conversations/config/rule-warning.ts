/** Warns of allow rules that have no effect: in the mode `bypass` everything is allowed that no other rule stops. */
import type { CreateConversation } from '../../contract/conversation.ts'

export function ruleWarning({
  permission_mode = 'bypass',
  permission_rules,
  allowed_tools,
}: CreateConversation): string[] {
  const count = (permission_rules?.allow.length ?? 0) + (allowed_tools?.length ?? 0)
  if (count === 0 || permission_mode !== 'bypass') return []
  return [
    'The allow rules have no effect in the mode bypass; set permission_mode to default to be asked about the rest.',
  ]
}
