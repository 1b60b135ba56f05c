/** The configuration of another model of the same endpoint: that of a run, or of a subagent. */
import type { LlmConfig, RunSampling } from '../../contract/values/llm-config.ts'
import { withOtherModel } from '../../llm/other-model.ts'
import type { State } from '../../state/state-shape.ts'
import { overridesOf } from '../../state/run-overrides.ts'
import { originOf } from '../config/llm-origin.ts'

/** The state with what its active run has instead of `llm_config`. `ownModel`: the model of an agent that has another one. */
export function inRun(state: State, ownModel?: string): State {
  const overrides = overridesOf(state)
  const usedModel = ownModel ?? overrides?.model
  const sampling = overrides?.sampling
  if (usedModel === undefined && !sampling) return state
  const { settings } = state
  const config = usedModel === undefined ? settings.llm_config : configFor(settings.llm_config, usedModel)
  return { ...state, settings: { ...settings, llm_config: sampling ? sampledConfig(config, sampling) : config } }
}

const sampledConfigs = new WeakMap<RunSampling, WeakMap<LlmConfig, LlmConfig>>()
const unsampledConfigs = new WeakMap<LlmConfig, LlmConfig>()

/** The same object for the same run and configuration, as a new one means a new client. */
function sampledConfig(config: LlmConfig, sampling: RunSampling): LlmConfig {
  const knownConfigs = sampledConfigs.get(sampling) ?? new WeakMap<LlmConfig, LlmConfig>()
  sampledConfigs.set(sampling, knownConfigs)
  const runConfig = knownConfigs.get(config) ?? { ...config, ...sampling }
  knownConfigs.set(config, runConfig)
  unsampledConfigs.set(runConfig, config)
  return runConfig
}

/** The configuration for what the server asks of the model: a limit for the answers to a client would cut off a summary. */
export const withoutSampling = (config: LlmConfig): LlmConfig => unsampledConfigs.get(config) ?? config

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
