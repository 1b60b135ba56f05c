/** A call as the gate sees it, and what the gate decides with. */
import type { PermissionMode } from '../contract/permission.ts'
import type { Places } from './places.ts'
import type { RuleSet } from './rules/rule-set.ts'
import type { CommandLine } from './shell/command-line.ts'
import type { ToolAccess } from './tool-access.ts'

/** What a call would do, with a command line read. */
export type Deed = Exclude<ToolAccess, { kind: 'command' }> | { readonly kind: 'command'; readonly line: CommandLine }

/** What `PreToolUse` hooks said about a call with its present input. */
export type HookVerdict = {
  readonly decision?: 'allow' | 'ask' | 'deny' | undefined
  /** Of the decision. */
  readonly reason?: string | undefined
  /** What the model reads with the result of the call. */
  readonly context?: string | undefined
}

export type GateRules = {
  readonly mode: PermissionMode
  /** Whatever the mode would let run is asked about. */
  readonly confirmation: boolean
  /** In the mode `callback`, somebody else is asked about what needs a permission. */
  readonly hasApprover?: boolean
  /** The command comes from a project that is not trusted: nothing is free, also reading needs a rule. */
  readonly isStrangers?: boolean
  readonly rules: RuleSet
}

export type Question = { readonly tool: string; readonly deed: Deed; readonly places: Places }
