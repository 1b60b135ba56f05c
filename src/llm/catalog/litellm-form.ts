/** Reads models in the form of LiteLLM's price list: `{"NAME": {"litellm_provider": …, "input_cost_per_token": …}}`. */
import { z } from 'zod'
import type { ReasoningEffort } from '../../contract/values/llm-config.ts'
import { REASONING_EFFORTS } from '../../contract/values/llm-config.ts'
import { EntryBuilder, parseEntry, TokenCount, TokenPrice } from './entry-builder.ts'
import type { ModelEntries, ModelFacts, PriceTier } from './model-facts.ts'
import { ANY_PROVIDER, wholePrice } from './model-facts.ts'

/** Models of other modes, such as embeddings, are left out. */
const MODES = new Set<unknown>([undefined, 'chat', 'responses', 'completion'])

/** Providers that are a way to reach any server. */
const WITHOUT_OWN_PRICES = new Set([
  'openai_like',
  'custom_openai',
  'custom',
  'hosted_vllm',
  'litellm_proxy',
  'lm_studio',
  'ollama',
  'ollama_chat',
])

const Entry = z.looseObject({
  litellm_provider: z.string().optional(),
  mode: z.string().optional(),
  max_input_tokens: TokenCount,
  max_tokens: TokenCount,
  max_output_tokens: TokenCount,
  input_cost_per_token: TokenPrice,
  output_cost_per_token: TokenPrice,
  cache_read_input_token_cost: TokenPrice,
  cache_creation_input_token_cost: TokenPrice,
  reasoning_effort_levels: z.array(z.string()).nullish(),
})
type Entry = z.infer<typeof Entry>

/** Throws a `CatalogFault` for a model with a wrong number. */
export function readLiteLlm(file: Readonly<Record<string, unknown>>): ModelEntries {
  const entries = new EntryBuilder()
  for (const [name, raw] of Object.entries(file)) {
    if (name === 'sample_spec' || !MODES.has(modeOf(raw))) continue
    const entry = parseEntry(name, Entry, raw)
    const { provider, model } = placeOf(name, entry)
    entries.add(provider, { name: model, ...factsOf(name, entry) })
  }
  return entries.done
}

function modeOf(raw: unknown): unknown {
  return typeof raw === 'object' && raw !== null && 'mode' in raw ? raw.mode : undefined
}

/** The prefix of a name is the provider's, if LiteLLM needs one to reach it. */
function placeOf(name: string, { litellm_provider: givenProvider }: Entry): { provider: string; model: string } {
  const [prefix = '', ...rest] = name.split('/')
  const own = givenProvider ?? (rest.length > 0 ? prefix : ANY_PROVIDER)
  const provider = WITHOUT_OWN_PRICES.has(own) ? ANY_PROVIDER : own
  return { provider, model: prefix === own && rest.length > 0 ? rest.join('/') : name }
}

const factsOf = (name: string, entry: Entry): Omit<ModelFacts, 'name'> => ({
  window: entry.max_input_tokens ?? entry.max_tokens,
  maxOutput: entry.max_output_tokens,
  price: wholePrice(
    {
      input: entry.input_cost_per_token,
      output: entry.output_cost_per_token,
      cacheRead: entry.cache_read_input_token_cost,
      // The list has 0 where nothing is charged in addition to the input.
      cacheWrite: entry.cache_creation_input_token_cost || undefined,
    },
    tiersOf(name, entry),
  ),
  efforts: effortsOf(entry),
})

const TIER = /^input_cost_per_token_above_(\d+)k_tokens$/

function tiersOf(name: string, entry: Entry): PriceTier[] {
  return Object.keys(entry).flatMap((field) => {
    const thousands = TIER.exec(field)?.[1]
    if (thousands === undefined) return []
    const at = (kind: string) => {
      const above = `${kind}_above_${thousands}k_tokens`
      return parseEntry(name, TokenPrice, entry[above], [above])
    }
    const price = wholePrice({
      input: at('input_cost_per_token'),
      output: at('output_cost_per_token') ?? entry.output_cost_per_token,
      cacheRead: at('cache_read_input_token_cost'),
      cacheWrite: at('cache_creation_input_token_cost') || undefined,
    })
    return price ? [{ ...price, above: Number(thousands) * 1000 }] : []
  })
}

const USUAL: ReadonlySet<string> = new Set(['low', 'medium', 'high'])

/** The list names the usual levels only where a model does not have all of them, and of some models none. */
function effortsOf(entry: Entry): ReasoningEffort[] | undefined {
  const { reasoning_effort_levels: levels } = entry
  const flagOf = (level: string) => entry[`supports_${level}_reasoning_effort`]
  if (!levels && REASONING_EFFORTS.every((level) => flagOf(level) === undefined)) return undefined
  const has = (level: string) => flagOf(level) ?? USUAL.has(level)
  return REASONING_EFFORTS.filter((level) => (levels ? levels.includes(level) : has(level) === true))
}
