/** The configuration of another model at the same endpoint: of a fallback, a title, a summary or a subagent. */
import type { LlmConfig } from '../contract/llm-config.ts'

/** Leaves out what is known of the first model alone. */
export function withOtherModel(config: LlmConfig, model: string): LlmConfig {
  if (model === config.model) return config
  const {
    context_window: _,
    input_cost_per_token: __,
    output_cost_per_token: ___,
    cache_read_cost_per_token: ____,
    cache_write_cost_per_token: _____,
    ...rest
  } = config
  return { ...rest, model }
}
