/** What holds for commands that clients run themselves: nobody is asked about them, but deny rules hold. */
import type { GateRules } from './rules/gate-rules.ts'
import type { PermissionGate } from './permissions.ts'
import type { ToolAccess } from './tool-access.ts'

/** Returns why the command is refused, as a sentence; undefined if it may run. */
export async function refusalOfCommand(
  gate: PermissionGate,
  { rules }: GateRules,
  command: Omit<Extract<ToolAccess, { kind: 'command' }>, 'kind'>,
): Promise<string | undefined> {
  const denying: GateRules = { mode: 'bypass', confirmation: false, rules: { allow: [], ask: [], deny: rules.deny } }
  if (rules.deny.length === 0) return undefined
  await gate.prepare(denying)
  const verdict = gate.verdictOn('Bash', { kind: 'command', ...command }, denying, false)
  if (verdict.behavior === 'allow') return undefined
  return verdict.behavior === 'deny'
    ? verdict.reason
    : `Write the command more plainly, or change the rules: ${verdict.reason}.`
}
