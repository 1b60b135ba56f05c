/**
 * What an answer costs: by the configured prices, else what the provider says, else by the list prices of its vendor.
 */
import type { LlmConfig } from '../contract/llm-config.ts'
import { MAX_COST_USD } from '../contract/message.ts'
import type { Usage } from '../contract/message.ts'
import type { Endpoint } from './endpoint.ts'
import { ANTHROPIC_URL, OPENAI_URL } from './provider-name.ts'

/** USD for one token. */
type Price = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** The hosts whose prices are known: elsewhere the same name has another price. */
const OPENAI = new URL(OPENAI_URL).hostname
const ANTHROPIC = new URL(ANTHROPIC_URL).hostname

const MILLION = 1e6

/** Prices of a million tokens. OpenAI charges nothing extra for writing the cache. */
const openAi = (input: number, output: number, cacheRead: number): Price => ({
  input: input / MILLION,
  output: output / MILLION,
  cacheRead: cacheRead / MILLION,
  cacheWrite: input / MILLION,
})

/** Prices of a million tokens. Writing the cache for five minutes costs a quarter more than other input. */
const anthropic = (input: number, output: number, cacheRead = input / 10): Price => ({
  ...openAi(input, output, cacheRead),
  cacheWrite: (input * 1.25) / MILLION,
})

/** List prices of November 2026, without those of batches, priorities and very long prompts. */
const LIST_PRICES: Readonly<Record<string, Readonly<Record<string, Price>>>> = {
  [ANTHROPIC]: {
    'claude-fable-5-1': anthropic(10, 50, 0.25),
    'claude-fable-5': anthropic(10, 50),
    'claude-opus-5-5': anthropic(4, 20, 0.2),
    'claude-opus-5': anthropic(5, 25),
    'claude-opus-4-8': anthropic(5, 25),
    'claude-opus-4-7': anthropic(5, 25),
    'claude-opus-4-6': anthropic(5, 25),
    'claude-opus-4-5': anthropic(5, 25),
    'claude-sonnet-5-5': anthropic(2, 10, 0.1),
    'claude-sonnet-5': anthropic(2, 10),
    'claude-sonnet-4-6': anthropic(3, 15),
    'claude-sonnet-4-5': anthropic(3, 15),
    'claude-haiku-4-5': anthropic(1, 5),
  },
  [OPENAI]: {
    'gpt-5.4': openAi(2.5, 15, 0.25),
    'gpt-5.4-mini': openAi(0.75, 4.5, 0.075),
    'gpt-5.1': openAi(1.25, 10, 0.125),
    'gpt-5': openAi(1.25, 10, 0.125),
    'gpt-5-mini': openAi(0.25, 2, 0.025),
    'gpt-5-nano': openAi(0.05, 0.4, 0.005),
    'gpt-4.1': openAi(2, 8, 0.5),
    'gpt-4.1-mini': openAi(0.4, 1.6, 0.1),
    'gpt-4o': openAi(2.5, 10, 1.25),
    'gpt-4o-mini': openAi(0.15, 0.6, 0.075),
    o3: openAi(2, 8, 0.5),
    'o4-mini': openAi(1.1, 4.4, 0.275),
  },
}

/** `sent` is the cost that the provider reported. Returns undefined if nothing says what the answer costs. */
export function costOf(
  config: LlmConfig,
  endpoint: Endpoint,
  usage: Usage,
  sent: number | undefined,
): number | undefined {
  const configured = configuredPrice(config)
  if (!configured && sent !== undefined) return sent
  const price = configured ?? listPrice(endpoint)
  return price && Math.min(costAt(price, usage), MAX_COST_USD)
}

/** Returns true if the server knows what answers cost, even if the provider does not say. */
export const hasPrice = (config: LlmConfig, endpoint: Endpoint): boolean =>
  (configuredPrice(config) ?? listPrice(endpoint)) !== undefined

/** Without both prices there is no cost: half a price would be mistaken for the whole. */
function configuredPrice(config: LlmConfig): Price | undefined {
  const { input_cost_per_token: input, output_cost_per_token: output } = config
  if (input === undefined || output === undefined) return undefined
  const { cache_read_cost_per_token: read = input, cache_write_cost_per_token: write = input } = config
  return { input, output, cacheRead: read, cacheWrite: write }
}

/** A dated name has the price of its model. */
function listPrice({ baseUrl, model }: Endpoint): Price | undefined {
  const prices = LIST_PRICES[new URL(baseUrl).hostname]
  const name = model.toLowerCase().replace(/-(\d{8}|\d{4}-\d\d-\d\d|latest)$/, '')
  return prices && Object.hasOwn(prices, name) ? prices[name] : undefined
}

function costAt({ input, output, cacheRead, cacheWrite }: Price, usage: Usage): number {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens = 0 } = usage
  const plain = Math.max(0, input_tokens - cached_tokens - cache_write_tokens)
  return plain * input + cached_tokens * cacheRead + cache_write_tokens * cacheWrite + output_tokens * output
}
