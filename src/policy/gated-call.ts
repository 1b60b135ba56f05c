/** A call as the gate sees it, and what the gate decides with. */
import type { PermissionMode } from '../contract/permission.ts'
import type { Places } from './places.ts'
import type { RuleSet } from './rules/rule-set.ts'
import type { CommandLine } from './shell/command-line.ts'
import type { ToolAccess } from './tool-access.ts'

/** What a call would do, with a command line read. */
export type Deed = Exclude<ToolAccess, { kind: 'command' }> | { readonly kind: 'command'; readonly line: CommandLine }

export type GateRules = {
  readonly mode: PermissionMode
  /** Whatever the mode would let run is asked about. */
  readonly confirmation: boolean
  readonly rules: RuleSet
}

export type Question = { readonly tool: string; readonly deed: Deed; readonly places: Places }
