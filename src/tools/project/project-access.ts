/** What the tools `Skill` and `SlashCommand` need of their conversation. */
import type { ToolAccess } from '../../policy/tool-access.ts'
import type { ToolContext } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'

export type ProjectAccess = {
  /** Returns what the gate decides about: the file is read. */
  readonly accessOfSkill: (name: string) => ToolAccess
  readonly accessOfCommand: (text: string) => ToolAccess
  readonly useSkill: (name: string, args: string) => Promise<ToolOutcome>
  /** `text` is `/name arguments`. */
  readonly useCommand: (text: string, signal: ToolContext['signal']) => Promise<ToolOutcome>
}
