/** The options of one run, as a request has them: checked, and stored in its first event. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { modeNamed } from '../../contract/values/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { RunRequest } from '../../contract/run.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { RequestedRun } from '../../state/drafts.ts'
import type { State } from '../../state/state.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { BudgetedSettings } from '../subagents/check-budget.ts'
import { checkBudgetOfRun } from '../subagents/check-budget.ts'
import { originOf } from '../config/llm-origin.ts'
import { checkRules } from '../config/permission-rules.ts'

export type RunRequestOptions = Omit<Partial<RunRequest>, 'wait' | 'timeout' | 'after_seq'>

/** Throws a `Problem` for what the conversation cannot have; the caller checks the schema, which takes time. */
export function requestedRun(
  { max_steps: maxSteps, output_schema: outputSchema, tool_choice: toolChoice, ...overrides }: RunRequestOptions,
  settings: BudgetedSettings,
  { catalog, redact }: { readonly catalog: ModelCatalog; readonly redact: (text: string) => string },
): RequestedRun {
  const { model, permission_mode: mode, allowed_tools: allow, instructions } = overrides
  const { temperature, max_output_tokens, reasoning_effort } = overrides
  if (model !== undefined) requireSameEndpoint(settings.llm_config, model)
  checkBudgetOfRun(settings, model, catalog)
  return withoutUndefined({
    maxSteps,
    outputSchema,
    toolChoice,
    model: model && redact(model),
    permissionMode: mode && modeNamed(mode),
    allowedTools: allow && checkRules('allowed_tools', { allow }, redact).allow,
    instructions: instructions && redact(instructions),
    sampling: withoutUndefined({ temperature, max_output_tokens, reasoning_effort }),
  })
}

/**
 * Returns what a run that continues the last one has instead of the settings of the conversation. A rule in which there is a
 * secret since would be refused.
 */
export function overridesOfLast({ lastRun }: State, redact: (text: string) => string): RunRequestOptions {
  const { model, permissionMode: permission_mode, allowed, instructions, sampling } = lastRun?.overrides ?? {}
  const allowed_tools = allowed?.allow.filter((rule) => redact(rule) === rule)
  return withoutUndefined({ model, permission_mode, allowed_tools, instructions, ...sampling })
}

/** The key of the conversation must not be sent to another endpoint. */
function requireSameEndpoint(config: LlmConfig, model: string): void {
  if (originOf({ ...config, model }) === originOf(config)) return
  throw new Problem(
    'invalid_request',
    `model: ${model} is of another endpoint than the model of the conversation; change llm_config, which also takes its key.`,
  )
}
