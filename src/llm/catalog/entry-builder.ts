/** Collects the models of a catalogue, and says which one has a wrong number. */
import { z } from 'zod'
import type { ModelEntries, ModelFacts } from './model-facts.ts'
import { perToken } from './model-facts.ts'
import { keyOf } from './model-names.ts'

/** Its `message` is a sentence that names the model, without its end. */
export class CatalogFault extends Error {}

const MAX_TOKENS = 100_000_000
/** USD. The most expensive models cost less than a thousandth: a price for a million tokens is recognised. */
const MAX_TOKEN_PRICE = 0.01

const tokensError = `must be a whole number from 0 to ${MAX_TOKENS}`
/** Lists have 0, or nothing, for what they do not know. */
export const TokenCount = z
  .int({ error: tokensError })
  .min(0, { error: tokensError })
  .max(MAX_TOKENS, { error: tokensError })
  .nullish()
  .transform((count) => count || undefined)

const priceUpTo = (most: number, tokens: string) => {
  const error = `must be a number from 0 to ${most}, in USD for ${tokens}`
  return z
    .number({ error })
    .min(0, { error })
    .max(most, { error })
    .nullish()
    .transform((price) => price ?? undefined)
}
export const TokenPrice = priceUpTo(MAX_TOKEN_PRICE, 'one token')
export const MillionPrice = priceUpTo(MAX_TOKEN_PRICE * 1e6, 'a million tokens').transform(
  (price) => price && perToken(price),
)

export class EntryBuilder {
  readonly #providers = new Map<string, Map<string, ModelFacts>>()

  get done(): ModelEntries {
    return this.#providers
  }

  add(provider: string, facts: ModelFacts): void {
    const models = this.#providers.get(provider) ?? new Map<string, ModelFacts>()
    this.#providers.set(provider, models)
    models.set(keyOf(facts.name), facts)
  }
}

/** Throws a `CatalogFault` that names the model and the field. */
export function parseEntry<T>(model: string, schema: z.ZodType<T>, raw: unknown, path: readonly string[] = []): T {
  const parseResult = schema.safeParse(raw)
  if (parseResult.success) return parseResult.data
  const [issue] = parseResult.error.issues
  const field = [...path, ...(issue?.path ?? [])].join('.')
  const what = field === '' ? 'is not usable: it' : `has a wrong value: ${field}`
  throw new CatalogFault(`The model ${JSON.stringify(model)} ${what} ${issue?.message}`)
}
