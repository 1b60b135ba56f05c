/** Reads models in the form of models.dev: `{"PROVIDER": {"api": …, "models": {"NAME": {"limit": …, "cost": …}}}}`. */
import { z } from 'zod'
import type { ReasoningEffort } from '../../contract/values/llm-config.ts'
import { REASONING_EFFORTS } from '../../contract/values/llm-config.ts'
import { EntryBuilder, MillionPrice, parseEntry, TokenCount } from './entry-builder.ts'
import type { ModelEntries, ModelFacts } from './model-facts.ts'
import { wholePrice } from './model-facts.ts'

/** Its name of a provider -> the name that LiteLLM gives it. */
const PROVIDERS: Readonly<Record<string, string>> = {
  google: 'gemini',
  togetherai: 'together_ai',
  moonshotai: 'moonshot',
}

const Provider = z.looseObject({
  api: z.url({ error: 'must be a URL' }).optional(),
  models: z.record(z.string(), z.unknown()),
})

const COST = { input: MillionPrice, output: MillionPrice, cache_read: MillionPrice, cache_write: MillionPrice }

const Model = z.looseObject({
  limit: z.looseObject({ context: TokenCount, input: TokenCount, output: TokenCount }).nullish(),
  cost: z.looseObject({ ...COST, context_over_200k: z.looseObject(COST).nullish() }).nullish(),
  reasoning_options: z
    .array(z.looseObject({ type: z.string(), values: z.array(z.unknown()).optional() }))
    .nullish()
    .catch(undefined),
})
type Model = z.infer<typeof Model>
type Cost = z.infer<z.ZodObject<typeof COST>>

export function isOfModelsDev(file: Readonly<Record<string, unknown>>): boolean {
  return Object.values(file).some((value) => z.looseObject({ models: z.looseObject({}) }).safeParse(value).success)
}

/** Throws a `CatalogFault` for a model with a wrong number. */
export function readModelsDev(file: Readonly<Record<string, unknown>>): ModelEntries {
  const entries = new EntryBuilder()
  for (const [id, raw] of Object.entries(file)) {
    const { api, models } = parseEntry(id, Provider, raw)
    const provider =
      (Object.hasOwn(PROVIDERS, id) ? PROVIDERS[id] : undefined) ?? (api === undefined ? id : new URL(api).host)
    for (const [name, model] of Object.entries(models)) {
      entries.add(provider, { name, ...factsOf(parseEntry(`${id}/${name}`, Model, model)) })
    }
  }
  return entries.done
}

function factsOf({ limit, cost, reasoning_options: options }: Model): Omit<ModelFacts, 'name'> {
  const over = cost?.context_over_200k && wholePrice(pricesIn(cost.context_over_200k))
  return {
    window: limit?.input ?? limit?.context,
    maxOutput: limit?.output,
    price: cost ? wholePrice(pricesIn(cost), over ? [{ ...over, above: 200_000 }] : []) : undefined,
    efforts: effortsIn(options?.find(({ type }) => type === 'effort')?.values),
  }
}

const pricesIn = ({ input, output, cache_read, cache_write }: Cost) => ({
  input,
  output,
  cacheRead: cache_read,
  cacheWrite: cache_write || undefined,
})

const effortsIn = (values: readonly unknown[] | undefined): ReasoningEffort[] | undefined =>
  values && REASONING_EFFORTS.filter((level) => values.includes(level))
