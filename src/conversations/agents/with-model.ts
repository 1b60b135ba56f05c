/** The configuration of another model of the same endpoint: that of a run, or of a subagent. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { withOtherModel } from '../../llm/other-model.ts'
import type { State } from '../../state/state-shape.ts'
import { overridesOf } from '../../state/run-overrides.ts'
import { originOf } from '../config/llm-origin.ts'

/** The state with the model of its active run. */
export function inRun(state: State): State {
  const model = overridesOf(state)?.model
  return model === undefined ? state : withModel(state, model)
}

export function withModel(state: State, model: string): State {
  const { settings } = state
  return { ...state, settings: { ...settings, llm_config: configFor(settings.llm_config, model) } }
}

const configs = new WeakMap<LlmConfig, Map<string, LlmConfig>>()

/**
 * The same object for the same model, as a new one means a new client. What is known of the other model does not hold.
 * If the conversation has moved to an endpoint that the model is not of, its own model is used.
 */
function configFor(config: LlmConfig, model: string): LlmConfig {
  const knownConfigs = configs.get(config) ?? new Map<string, LlmConfig>()
  configs.set(config, knownConfigs)
  const { fallback_models: _, ...rest } = config
  const modelConfig = knownConfigs.get(model) ?? (isOfEndpoint(config, model) ? withOtherModel(rest, model) : config)
  knownConfigs.set(model, modelConfig)
  return modelConfig
}

const isOfEndpoint = (config: LlmConfig, model: string): boolean =>
  model !== config.model && originOf({ ...config, model }) === originOf(config)
