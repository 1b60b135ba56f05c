/** Warns about a model that does not seem to support tool calls. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { seemsToLackTools } from '../../llm/endpoints/models.ts'

/** Returns at most one warning. */
export function toolWarning({ model = '' }: LlmConfig, tools: readonly string[]): string[] {
  return tools.length && seemsToLackTools(model)
    ? [`${model} does not seem to support function calling; the agent may not be able to use its tools`]
    : []
}
