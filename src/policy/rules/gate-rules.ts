/** What the permission gate decides with. */
import type { PermissionMode } from '../../contract/values/permission.ts'
import type { RuleSet } from './rule-set.ts'

/** What `PreToolUse` hooks said about a call with its present input. */
export type HookVerdict = {
  readonly decision?: 'allow' | 'ask' | 'deny' | undefined
  /** The reason of the decision. */
  readonly reason?: string | undefined
  /** What the model reads with the result of the call. */
  readonly context?: string | undefined
}

export type GateRules = {
  readonly mode: PermissionMode
  /** Whatever the mode would let run is asked about. */
  readonly confirmation: boolean
  /** True if, in the mode `callback`, somebody else is asked about what needs a permission. */
  readonly hasApprover?: boolean
  /** The command comes from a project that is not trusted: nothing is free, also reading needs a rule. */
  readonly isStrangers?: boolean
  readonly rules: RuleSet
}

/** The properties of a call that the gate needs. */
export type GatedCall = {
  readonly toolUseId: string
  readonly name: string
  readonly input: unknown
  /** True if exactly this input was approved. */
  readonly approved: boolean
  readonly hook?: HookVerdict | undefined
}
