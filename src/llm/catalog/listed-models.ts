/** What is known about models, as clients read it. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { ModelInfo } from '../../contract/models.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { endpointOf } from '../endpoints/endpoint.ts'
import { LlmError } from '../errors/llm-error.ts'
import type { KnownFact, ModelCatalog } from './model-catalog.ts'
import type { ModelFacts, ModelPrice, Price } from './model-facts.ts'
import { providersAt } from './providers-of-hosts.ts'

/** Returns every model of the catalogues. */
export function modelsOfCatalogues(catalog: ModelCatalog): ModelInfo[] {
  const knownModels = new Map<string, ModelInfo>()
  for (const [source, entries] of catalog.catalogues) {
    for (const [provider, models] of entries) {
      for (const [key, facts] of models) {
        const place = JSON.stringify([provider, key])
        const before = knownModels.get(place)
        const info = infoOf({ provider, model: facts.name, ...valuesFrom(facts, (value) => ({ value, source })) })
        knownModels.set(place, before ? { ...info, ...before, sources: { ...info.sources, ...before.sources } } : info)
      }
    }
  }
  return [...knownModels.values()]
}

/** Returns undefined for a configuration without an endpoint. */
export function describeModel(config: LlmConfig, catalog: ModelCatalog): ModelInfo | undefined {
  try {
    const { baseUrl, model } = endpointOf(config)
    const [provider = ''] = providersAt(baseUrl)
    return infoOf({
      provider,
      model,
      window: catalog.knownWindow(config),
      maxOutput: catalog.knownMaxOutput(config),
      price: catalog.knownPrice(config),
      efforts: catalog.knownEfforts(config),
    })
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}

type Values = {
  readonly window: KnownFact<number> | undefined
  readonly maxOutput: KnownFact<number> | undefined
  readonly price: KnownFact<ModelPrice> | undefined
  readonly efforts: ModelFacts['efforts']
}

const valuesFrom = (
  { window, maxOutput, price, efforts }: ModelFacts,
  knownFact: <T>(value: T) => KnownFact<T>,
): Values => ({
  window: window === undefined ? undefined : knownFact(window),
  maxOutput: maxOutput === undefined ? undefined : knownFact(maxOutput),
  price: price && knownFact(price),
  efforts,
})

function infoOf(of: Values & { readonly provider: string; readonly model: string }): ModelInfo {
  const { provider, model, window, maxOutput, price, efforts } = of
  const tiers = price?.value.tiers?.map((tier) => ({ above_input_tokens: tier.above, ...pricesOf(tier) }))
  return withoutUndefined({
    model,
    provider,
    context_window: window?.value,
    max_output_tokens: maxOutput?.value,
    ...(price && pricesOf(price.value)),
    price_tiers: tiers,
    reasoning_efforts: efforts && [...efforts],
    sources: withoutUndefined({
      context_window: window?.source,
      max_output_tokens: maxOutput?.source,
      prices: price?.source,
    }),
  })
}

const pricesOf = (price: Price) => ({
  input_cost_per_token: price.input,
  output_cost_per_token: price.output,
  cache_read_cost_per_token: price.cacheRead,
  cache_write_cost_per_token: price.cacheWrite,
})
