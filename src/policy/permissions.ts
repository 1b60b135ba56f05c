/** The permission gate: the one place that decides whether a tool call runs, or is asked about first. Pure. */
import { createHash } from 'node:crypto'
import type { AskedToolUse } from '../contract/permission.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'

export type PermissionMode = { readonly confirmation: boolean }

/** What the gate has to know of a call. */
export type GatedCall = {
  readonly toolUseId: string
  readonly name: string
  readonly input: unknown
  /** A decision, made about this very input. */
  readonly approved: boolean
}

/** `isHarmless`: touches nothing outside the conversation, or will be refused anyhow. */
export type IsHarmless = (call: GatedCall) => boolean

/** Of calls that have not begun, those that must be decided before any of them begins; empty: all may run. The answer holds for the mode as given, so ask again before each call. */
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

/** What an approval is bound to: the call as it was shown. */
export function hashInput(name: string, input: unknown): string {
  return createHash('sha256').update(canonicalJson({ name, input })).digest('hex')
}
