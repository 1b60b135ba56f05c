/** How much reasoning is requested of a model that does not have all levels. */
import type { ReasoningEffort } from '../../contract/values/llm-config.ts'
import { REASONING_EFFORTS } from '../../contract/values/llm-config.ts'

/** Levels that only some models have. */
const HIGHEST: ReadonlySet<ReasoningEffort> = new Set(['xhigh', 'max'])

/** True for a level that models without it refuse: what is known of the model decides. */
export const isRareEffort = (effort: ReasoningEffort | undefined): effort is ReasoningEffort =>
  effort !== undefined && HIGHEST.has(effort)

/** Returns the highest level of the model that is not above the wanted one. */
export function effortWithin(wantedEffort: ReasoningEffort, has: readonly ReasoningEffort[]): ReasoningEffort {
  const most = REASONING_EFFORTS.indexOf(wantedEffort)
  return has.findLast((level) => REASONING_EFFORTS.indexOf(level) <= most) ?? wantedEffort
}
