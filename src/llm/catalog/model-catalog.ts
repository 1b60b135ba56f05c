/**
 * What the server knows about models: windows, limits of output, prices and levels of reasoning. A configuration takes
 * precedence over the file of the operator, that over the list of the endpoint, and that over the bundled catalogue.
 */
import type { LlmConfig, ReasoningEffort } from '../../contract/values/llm-config.ts'
import type { CatalogSource } from '../../contract/models.ts'
import { MAX_COST_USD } from '../../contract/values/message.ts'
import type { Usage } from '../../contract/values/message.ts'
import { lazily } from '../../lib/lazily.ts'
import { endpointOf } from '../endpoints/endpoint.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { LlmError } from '../errors/llm-error.ts'
import type { Fetch } from '../connection/pooled-fetch.ts'
import { vendorOfPrefix } from '../endpoints/vendors.ts'
import type { Bundle } from './bundled-form.ts'
import { readBundle } from './bundled-form.ts'
import { windowOfFamily } from './families.ts'
import type { EndpointLimits } from './endpoint-limits.ts'
import type { ModelEntries, ModelFacts, ModelPrice } from './model-facts.ts'
import { costAt, wholePrice } from './model-facts.ts'
import { baseName, keyOf, keysOf } from './model-names.ts'
import { providersAt, reportsCost } from './providers-of-hosts.ts'
import { REASONING_EFFORTS } from '../../contract/values/llm-config.ts'

/** A value, and where it is from. */
export type KnownFact<T> = { readonly value: T; readonly source: CatalogSource }

export type CatalogOptions = {
  /** Returns the text of the bundled catalogue. It is called once, at the first use. Without it, no catalogue is bundled. */
  readonly readBundled?: () => string
  /** The file of the operator. */
  readonly file?: ModelEntries | undefined
  /** What endpoints tell. Default: none is asked. */
  readonly limits?: EndpointLimits
}

type Field = 'window' | 'maxOutput' | 'price' | 'efforts'

type CatalogueFacts = { readonly [K in Field]: KnownFact<NonNullable<ModelFacts[K]>> | undefined }

/** What does not change while the server runs. */
type EndpointFacts = {
  readonly endpoint: Endpoint | undefined
  /** What the catalogues have. */
  readonly catalogueFacts: CatalogueFacts
}

const NO_ENTRIES: ModelEntries = new Map()

export class ModelCatalog {
  readonly #file: ModelEntries
  readonly #bundle: () => ModelEntries
  readonly #fileWindows: () => ReadonlyMap<string, number>
  readonly #bundleWindows: () => ReadonlyMap<string, number>
  readonly #foundEntries = new WeakMap<LlmConfig, EndpointFacts>()
  /** Windows by the name of the model alone. */
  readonly #named = new WeakMap<LlmConfig, { readonly window: KnownFact<number> | undefined }>()
  readonly #limits: EndpointLimits | undefined

  constructor({ readBundled, file = NO_ENTRIES, limits }: CatalogOptions = {}) {
    this.#file = file
    this.#limits = limits
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `npm run catalog` wrote it, and a test reads it
    this.#bundle = lazily(() => (readBundled ? readBundle(JSON.parse(readBundled()) as Bundle) : NO_ENTRIES))
    this.#fileWindows = lazily(() => windowsByName(this.#file))
    this.#bundleWindows = lazily(() => windowsByName(this.#bundle()))
  }

  /** Returns the context window. Cheap: every step asks. */
  windowOf(config: LlmConfig): number | undefined {
    return config.context_window ?? this.knownWindow(config)?.value
  }

  knownWindow(config: LlmConfig): KnownFact<number> | undefined {
    if (config.context_window !== undefined) return { value: config.context_window, source: 'config' }
    const knownWindow = this.#first(config, 'window')
    if (knownWindow) return knownWindow
    let namedFacts = this.#named.get(config)
    if (!namedFacts) this.#named.set(config, (namedFacts = { window: this.#byName(config) }))
    return namedFacts.window
  }

  knownMaxOutput(config: LlmConfig): KnownFact<number> | undefined {
    const { max_output_tokens: value } = config
    return value === undefined ? this.#first(config, 'maxOutput') : { value, source: 'config' }
  }

  knownPrice(config: LlmConfig): KnownFact<ModelPrice> | undefined {
    const value = configuredPrice(config)
    return value ? { value, source: 'config' } : this.#first(config, 'price')
  }

  knownEfforts(config: LlmConfig): readonly ReasoningEffort[] | undefined {
    return this.#first(config, 'efforts')?.value
  }

  /** The catalogues, the one that takes precedence first. */
  get catalogues(): readonly (readonly [CatalogSource, ModelEntries])[] {
    return [
      ['file', this.#file],
      ['bundle', this.#bundle()],
    ]
  }

  /**
   * `sent` is the cost that the endpoint reported, which counts before list prices where it is known to be in USD. Returns
   * undefined if nothing says what the answer costs: gateways that count no tokens send zeros.
   */
  costOf(config: LlmConfig, usage: Usage, sentTokens: number | undefined): number | undefined {
    const configuredCost = configuredPrice(config)
    if (!configuredCost && sentTokens !== undefined && this.#reportsCost(config)) return sentTokens
    const price = configuredCost ?? this.#first(config, 'price')?.value
    if (!price) return sentTokens
    return usage.input_tokens + usage.output_tokens === 0 ? undefined : Math.min(costAt(price, usage), MAX_COST_USD)
  }

  /** Returns true if the cost of each answer will be known. */
  knowsCost(config: LlmConfig): boolean {
    return this.knownPrice(config) !== undefined || this.#reportsCost(config)
  }

  /** Asks the endpoint for its limits if nothing better is known. Returns at once, and never throws. */
  learnFrom(config: LlmConfig, endpoint: Endpoint, fetch: Fetch | undefined): void {
    if (!this.#limits || !fetch || config.context_window !== undefined) return
    if (this.#find(config).catalogueFacts.window) return
    void this.#limits.update(endpoint, fetch)
  }

  /** Returns the configuration with an effort that its model has, as far as that is known. */
  withOwnEffort(config: LlmConfig): LlmConfig {
    const { reasoning_effort: wantedEffort } = config
    const has = isRareEffort(wantedEffort) ? this.knownEfforts(config) : undefined
    if (!has || wantedEffort === undefined || has.includes(wantedEffort)) return config
    return { ...config, reasoning_effort: effortWithin(wantedEffort, has) }
  }

  #first<K extends Field>(config: LlmConfig, field: K): CatalogueFacts[K] | KnownFact<NonNullable<ModelFacts[K]>> {
    const { endpoint, catalogueFacts } = this.#find(config)
    if (catalogueFacts[field]) return catalogueFacts[field]
    // An endpoint is asked only if none of the catalogues has its window.
    const value = endpoint && this.#limits?.factsOf(endpoint)?.[field]
    return value === undefined ? undefined : { value, source: 'endpoint' }
  }

  /** Reads no catalogue. */
  #reportsCost(config: LlmConfig): boolean {
    const endpoint = endpointIfAny(config)
    return endpoint !== undefined && reportsCost(endpoint.baseUrl)
  }

  #find(config: LlmConfig): EndpointFacts {
    const knownFacts = this.#foundEntries.get(config)
    if (knownFacts) return knownFacts
    const endpoint = endpointIfAny(config)
    const entries = this.catalogues.flatMap(([source, catalogue]) => {
      const facts = endpoint && entryAt(catalogue, endpoint)
      return facts ? [[source, facts] as const] : []
    })
    const first = <K extends Field>(field: K): KnownFact<NonNullable<ModelFacts[K]>> | undefined => {
      for (const [source, { [field]: value }] of entries) if (value !== undefined) return { value, source }
      return undefined
    }
    const catalogueFacts = {
      window: first('window'),
      maxOutput: first('maxOutput'),
      price: first('price'),
      efforts: first('efforts'),
    }
    const foundFacts = { endpoint, catalogueFacts }
    this.#foundEntries.set(config, foundFacts)
    return foundFacts
  }

  /** The window of a model is nearly the same wherever it is served. */
  #byName({ model = '' }: LlmConfig): KnownFact<number> | undefined {
    const name = baseName(model)
    const keys = keysOf(name)
    const inWindows = (windows: ReadonlyMap<string, number>) =>
      keys.map((key) => windows.get(key)).find((window) => window !== undefined)
    const ofFile = inWindows(this.#fileWindows())
    if (ofFile !== undefined) return { value: ofFile, source: 'file' }
    const value = inWindows(this.#bundleWindows()) ?? windowOfFamily(name)
    return value === undefined ? undefined : { value, source: 'bundle' }
  }
}

/** An incomplete configuration has none; the first request reports it. */
function endpointIfAny(config: LlmConfig): Endpoint | undefined {
  try {
    return endpointOf(config)
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}

function entryAt(entries: ModelEntries, { baseUrl, model }: Endpoint): ModelFacts | undefined {
  const keys = keysOf(model)
  for (const provider of providersAt(baseUrl)) {
    const facts = keys.map((key) => entries.get(provider)?.get(key)).find((each) => each !== undefined)
    if (facts) return facts
  }
  return undefined
}

const configuredPrice = (config: LlmConfig): ModelPrice | undefined =>
  wholePrice({
    input: config.input_cost_per_token,
    output: config.output_cost_per_token,
    cacheRead: config.cache_read_cost_per_token,
    cacheWrite: config.cache_write_cost_per_token,
  })

/** A vendor knows its own models best. Of several windows, the smallest: too large a one makes requests fail. */
function windowsByName(entries: ModelEntries): ReadonlyMap<string, number> {
  const windows = new Map<string, number>()
  for (const isVendor of [true, false]) {
    const foundCounts = new Map<string, number>()
    for (const [provider, models] of entries) {
      if ((vendorOfPrefix(provider)?.family !== undefined) !== isVendor) continue
      for (const { name, window } of models.values()) {
        const key = keyOf(baseName(name))
        if (window !== undefined) foundCounts.set(key, Math.min(window, foundCounts.get(key) ?? window))
      }
    }
    for (const [key, window] of foundCounts) if (!windows.has(key)) windows.set(key, window)
  }
  return windows
}

/** Levels that only some models have. */
const HIGHEST: ReadonlySet<ReasoningEffort> = new Set(['xhigh', 'max'])

/** True for a level that models without it refuse: what is known of the model decides. */
const isRareEffort = (effort: ReasoningEffort | undefined): effort is ReasoningEffort =>
  effort !== undefined && HIGHEST.has(effort)

/** Returns the highest level of the model that is not above the wanted one. */
function effortWithin(wantedEffort: ReasoningEffort, has: readonly ReasoningEffort[]): ReasoningEffort {
  const most = REASONING_EFFORTS.indexOf(wantedEffort)
  return has.findLast((level) => REASONING_EFFORTS.indexOf(level) <= most) ?? wantedEffort
}
