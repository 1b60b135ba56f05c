/** The permission gate: the one place that decides whether a tool call runs or needs an approval first. Pure. */
import { createHash } from 'node:crypto'
import type { AskedToolUse } from '../contract/permission.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'

export type PermissionMode = { readonly confirmation: boolean }

/** The properties of a call that the gate needs. */
export type GatedCall = {
  readonly toolUseId: string
  readonly name: string
  readonly input: unknown
  /** True if exactly this input was approved. */
  readonly approved: boolean
}

/** `isHarmless`: affects nothing outside the conversation, or will be refused anyway. */
export type IsHarmless = (call: GatedCall) => boolean

/**
 * Returns the calls that must be decided before any call begins; empty: all may run. The result is valid for the given
 * mode, so check again before each call.
 */
export function callsToAsk(calls: readonly GatedCall[], mode: PermissionMode, isHarmless: IsHarmless): AskedToolUse[] {
  if (!mode.confirmation) return []
  return calls
    .filter((call) => !call.approved && !isHarmless(call))
    .map(({ toolUseId, name, input }) => {
      return {
        tool_use_id: toolUseId,
        name,
        input,
        input_hash: hashInput(name, input),
        reason: 'confirmation_mode is on',
      }
    })
}

/** Hashes the call as shown, to which an approval is bound. */
export function hashInput(name: string, input: unknown): string {
  return createHash('sha256').update(canonicalJson({ name, input })).digest('hex')
}
