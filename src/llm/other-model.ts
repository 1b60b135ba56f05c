/** The configuration of another model at the same endpoint: of a fallback, a title, a summary or a subagent. */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import { FIELDS_OF_MODEL } from '../contract/values/llm-config.ts'

/** Leaves out what is known of the first model alone. */
export function withOtherModel(config: LlmConfig, model: string): LlmConfig {
  if (model === config.model) return config
  const names = new Set<string>(FIELDS_OF_MODEL)
  return { ...Object.fromEntries(Object.entries(config).filter(([name]) => !names.has(name))), model }
}
