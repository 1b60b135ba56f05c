/**
 * The form of the bundled catalogue, which is small: `npm run catalog` writes it and the server reads it. A row is
 * `[window, maximum of output, input, output, cache read, cache write, efforts, tiers]`. Prices are USD for a million
 * tokens, efforts are digits that count `REASONING_EFFORTS`, and `null` is unknown.
 */
import { REASONING_EFFORTS } from '../../contract/values/llm-config.ts'
import type { ModelEntries, ModelFacts, Price } from './model-facts.ts'
import { perToken } from './model-facts.ts'
import { keyOf } from './model-names.ts'

type PriceRow = readonly [input: number, output: number, cacheRead: number, cacheWrite: number]
type Row = readonly [number | null, number | null, PriceRow | null, string?, ...(readonly [number, ...PriceRow])[]]

/** Rows by provider and name. */
export type Bundle = Readonly<Record<string, Readonly<Record<string, Row>>>>

export function rowOf({ window, maxOutput, price, efforts = [] }: ModelFacts): Row {
  const digits = efforts.map((effort) => REASONING_EFFORTS.indexOf(effort)).join('')
  const tiers = price?.tiers?.map((tier) => [tier.above, ...inMillions(tier)] as const) ?? []
  const head = [window ?? null, maxOutput ?? null, price ? inMillions(price) : null] as const
  if (tiers.length > 0) return [...head, digits, ...tiers]
  return digits === '' ? head : [...head, digits]
}

export function readBundle(bundle: Bundle): ModelEntries {
  const providers = Object.entries(bundle).map(([provider, rows]) => {
    const models = Object.entries(rows).map(([name, row]) => [keyOf(name), { name, ...factsIn(row) }] as const)
    return [provider, new Map(models)] as const
  })
  return new Map(providers)
}

function factsIn([window, maxOutput, price, digits = '', ...tiers]: Row): Omit<ModelFacts, 'name'> {
  const above = tiers.map(([from, ...prices]) => ({ above: from, ...ofTokens(prices) }))
  return {
    window: window ?? undefined,
    maxOutput: maxOutput ?? undefined,
    price: price ? { ...ofTokens(price), ...(above.length > 0 && { tiers: above }) } : undefined,
    efforts: digits === '' ? undefined : REASONING_EFFORTS.filter((_, at) => digits.includes(String(at))),
  }
}

/** Rounded like `perToken`. */
const inMillions = (price: Price): PriceRow => {
  const million = (usd: number) => Number((usd * 1e6).toPrecision(12))
  return [million(price.input), million(price.output), million(price.cacheRead), million(price.cacheWrite)]
}

const ofTokens = ([input, output, cacheRead, cacheWrite]: PriceRow): Price => ({
  input: perToken(input),
  output: perToken(output),
  cacheRead: perToken(cacheRead),
  cacheWrite: perToken(cacheWrite),
})
