/** Finds where the requests of a configuration go: its model first, and then its fallback models, at the same endpoint. */
import type { LlmConfig } from '../contract/llm-config.ts'
import type { ModelCatalog } from './catalog/model-catalog.ts'
import type { Endpoint } from './endpoint.ts'
import { endpointOf } from './endpoint.ts'
import type { Post } from './model-connection.ts'
import { withOtherModel } from './other-model.ts'
import type { EndpointPace } from './pacing/endpoint-pace.ts'
import type { Paces } from './pacing/paces.ts'
import type { Fetch } from './pooled-fetch.ts'
import type { Dialects, Adapter } from './provider.ts'
import { adapterOf } from './providers.ts'

export type ModelTarget = {
  readonly config: LlmConfig
  readonly endpoint: Endpoint
  readonly adapter: Adapter
  readonly pace: EndpointPace
  readonly post: () => Promise<Post>
}

export type TargetDeps = {
  readonly catalog: ModelCatalog
  readonly dialects: Dialects
  readonly paces: Paces
  readonly fetch: Fetch | undefined
}

export type ModelTargets = readonly [ModelTarget, ...ModelTarget[]]

/** Throws an `LlmError` of type `config` if the configuration is incomplete. */
export function targetsOf(config: LlmConfig, deps: TargetDeps): ModelTargets {
  const [first, ...others] = configsOf(config)
  return [targetOf(first, deps), ...others.map((other) => targetOf(other, deps))]
}

/** Returns the configurations of the models that may be asked. Throws the same. */
export function configsOf(config: LlmConfig): readonly [LlmConfig, ...LlmConfig[]] {
  const { fallback_models: models = [], ...rest } = config
  // With its URL: the name of a fallback must not lead to another host, which would get the key.
  const base_url = config.base_url ?? endpointOf(config).baseUrl
  return [config, ...models.map((model) => ({ ...withOtherModel(rest, model), base_url }))]
}

function targetOf(given: LlmConfig, { catalog, dialects, paces, fetch }: TargetDeps): ModelTarget {
  const config = catalog.withOwnEffort(given)
  const endpoint = endpointOf(config)
  const adapter = adapterOf(config, endpoint, dialects)
  let post: Promise<Post> | undefined
  return { config, endpoint, adapter, pace: paces.of(endpoint), post: () => (post ??= adapter.connect(fetch)) }
}
