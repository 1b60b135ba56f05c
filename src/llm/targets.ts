/** Finds where the requests of a configuration go: its model first, and then its fallback models, at the same endpoint. */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import type { ModelCatalog } from './catalog/model-catalog.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import { endpointOf } from './endpoints/endpoint.ts'
import type { Post } from './model-connection.ts'
import { withOtherModel } from './other-model.ts'
import type { EndpointPace } from './pacing/endpoint-pace.ts'
import type { Paces } from './pacing/paces.ts'
import type { Fetch } from './connection/pooled-fetch.ts'
import type { Dialects, Adapter } from './provider.ts'
import { adapterOf } from './providers.ts'
import type { VendorKeys } from './endpoints/vendor-keys.ts'
import { vendorAt } from './endpoints/vendors.ts'

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
  readonly vendorKeys?: VendorKeys | undefined
}

export type ModelTargets = readonly [ModelTarget, ...ModelTarget[]]

/** Throws an `LlmError` of type `config` if the configuration is incomplete. */
export function targetsOf(config: LlmConfig, deps: TargetDeps): ModelTargets {
  const [first, ...others] = configsOf(config, deps.vendorKeys)
  return [targetOf(first, deps), ...others.map((other) => targetOf(other, deps))]
}

/**
 * Returns the configurations of the models that may be asked. With keys, the fallback model of another vendor is asked there; all
 * others are asked at the same endpoint. Throws the same.
 */
export function configsOf(config: LlmConfig, keys?: VendorKeys): readonly [LlmConfig, ...LlmConfig[]] {
  const { fallback_models: models = [], ...rest } = config
  // Each has its URL: the name of a fallback must not lead to another host, which would get the key.
  const base_url = config.base_url ?? endpointOf(config).baseUrl
  const atOther = (model: string) =>
    keys && vendorAt(base_url) ? atOtherVendor(rest, model, base_url, keys) : undefined
  return [config, ...models.map((model) => atOther(model) ?? { ...withOtherModel(rest, model), base_url })]
}

/** Leaves out what belongs to the first endpoint: its key, above all. */
function atOtherVendor(config: LlmConfig, model: string, base_url: string, keys: VendorKeys): LlmConfig | undefined {
  const own = keys.for({ model })
  if (!own || own.vendor === vendorAt(base_url) || vendorAt(base_url)?.servesOthers) return undefined
  const {
    api_key: _,
    extra_headers: __,
    base_url: ___,
    provider: ____,
    custom_llm_provider: _____,
    api_version: ______,
    extra_body: _______,
    ...common
  } = withOtherModel(config, model)
  return { ...common, api_key: own.key }
}

function targetOf(givenConfig: LlmConfig, { catalog, dialects, paces, fetch }: TargetDeps): ModelTarget {
  const config = catalog.withOwnEffort(givenConfig)
  const endpoint = endpointOf(config)
  const adapter = adapterOf(config, endpoint, dialects)
  let post: Promise<Post> | undefined
  return { config, endpoint, adapter, pace: paces.of(endpoint), post: () => (post ??= adapter.connect(fetch)) }
}
