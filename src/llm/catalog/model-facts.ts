/** What a catalogue says of a model, and what an answer costs by it. */
import type { ReasoningEffort } from '../../contract/values/llm-config.ts'
import type { Usage } from '../../contract/values/message.ts'

/** USD for one token. */
export type Price = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** The price of a request with more input tokens than `above`. */
export type PriceTier = Price & { readonly above: number }

/** `tiers` are sorted by `above`. */
export type ModelPrice = Price & { readonly tiers?: readonly PriceTier[] }

export type ModelFacts = {
  /** The name as its provider writes it. */
  readonly name: string
  /** Tokens that the model can read. */
  readonly window?: number | undefined
  readonly maxOutput?: number | undefined
  readonly price?: ModelPrice | undefined
  /** The efforts in the order of `REASONING_EFFORTS`. Absent: unknown. */
  readonly efforts?: readonly ReasoningEffort[] | undefined
}

/**
 * Models by provider, and there by the `keyOf` their name. The provider has the name that LiteLLM gives it, or is the
 * host of an endpoint, or `ANY_PROVIDER`.
 */
export type ModelEntries = ReadonlyMap<string, ReadonlyMap<string, ModelFacts>>

/** The provider of entries that hold at each endpoint whose provider is unknown. */
export const ANY_PROVIDER = ''

/** Twelve digits are more than any price has, and hide the rounding of the division. */
export const perToken = (usdOfMillion: number): number => Number((usdOfMillion / 1e6).toPrecision(12))

export function costAt(price: ModelPrice, usage: Usage): number {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens = 0 } = usage
  const { input, output, cacheRead, cacheWrite } =
    price.tiers?.findLast(({ above }) => input_tokens > above) ?? (price satisfies Price)
  const plain = Math.max(0, input_tokens - cached_tokens - cache_write_tokens)
  return plain * input + cached_tokens * cacheRead + cache_write_tokens * cacheWrite + output_tokens * output
}

type Prices = { readonly [K in 'input' | 'output' | 'cacheRead' | 'cacheWrite']?: number | undefined }

/** Returns undefined unless both prices are known: half of the cost would look like all of it. */
export function wholePrice(prices: Prices, tiers: readonly PriceTier[] = []): ModelPrice | undefined {
  const { input, output, cacheRead = input, cacheWrite = input } = prices
  if (input === undefined || output === undefined) return undefined
  if (cacheRead === undefined || cacheWrite === undefined) return undefined
  const sortedTiers = tiers.toSorted((one, other) => one.above - other.above)
  return { input, output, cacheRead, cacheWrite, ...(sortedTiers.length > 0 && { tiers: sortedTiers }) }
}
