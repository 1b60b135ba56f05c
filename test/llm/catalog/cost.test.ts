/** What answers cost: by the configuration, by the provider, and by list prices. */
import { describe, expect, test } from 'vitest'
import type { LlmConfig } from '../../../src/contract/values/llm-config.ts'
import { askScript } from '../asking.ts'
import { bundledCatalog } from './bundled.ts'

const USAGE = { input_tokens: 1_000_000, output_tokens: 100_000, cached_tokens: 0, reasoning_tokens: 0 }
const CACHED = { ...USAGE, cached_tokens: 600_000, cache_write_tokens: 300_000 }
const cost = (config: LlmConfig, usage = USAGE, sent?: number) =>
  bundledCatalog().costOf({ model: 'm', base_url: 'https://llm.example.com/v1', ...config }, usage, sent)
const PRICE = { input: 1e-6, output: 1e-6, cacheRead: 1e-6, cacheWrite: 1e-6 }
const vendor = (model: string) => ({ model, base_url: undefined as never })

describe('by list prices', () => {
  test.each([
    [vendor('claude-opus-5'), USAGE, 7.5],
    [vendor('claude-opus-4-5-20251101'), USAGE, 7.5],
    [vendor('anthropic/claude-sonnet-4-6'), CACHED, 0.3 + 0.18 + 1.125 + 1.5],
    [vendor('gpt-5'), USAGE, 2.25],
    [vendor('gpt-5-2025-08-07'), CACHED, 0.4 * 1.25 + 0.6 * 0.125 + 1],
    [vendor('deepseek/deepseek-chat'), USAGE, 0.322],
    [vendor('gpt-5.4'), { ...USAGE, input_tokens: 200_000 }, 2],
    [vendor('gpt-5.4'), USAGE, 7.25],
  ])('%j', (config, usage, usd) => expect(cost(config, usage)).toBeCloseTo(usd, 9))

  test.each([
    ['an unknown model', vendor('gpt-5-turbo-x')],
    ['the same model elsewhere', { model: 'gpt-5' }],
    ['a name of every object', vendor('constructor')],
  ])('%s has none', (_what, config) => expect(cost(config)).toBeUndefined())
})

describe('by the configuration', () => {
  const prices = { input_cost_per_token: 2e-6, output_cost_per_token: 1e-5 }

  test('replaces list prices and what the provider says', () => {
    expect(cost({ ...vendor('gpt-5'), ...prices }, USAGE, 99)).toBeCloseTo(3, 9)
  })

  test('without prices of the cache counts cached tokens in full', () => {
    expect(cost(prices, CACHED)).toBeCloseTo(3, 9)
    const cache = { cache_read_cost_per_token: 2e-7, cache_write_cost_per_token: 2.5e-6 }
    expect(cost({ ...prices, ...cache }, CACHED)).toBeCloseTo(0.2 + 0.12 + 0.75 + 1, 9)
  })

  test('needs both prices', () => expect(cost({ input_cost_per_token: 1 })).toBeUndefined())
})

describe('by the provider', () => {
  const turn = (sent: unknown) => [
    { text: 'Hi', usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, cost: sent } },
  ]

  test('is taken as it is', async () => expect((await askScript(turn(0.0125))).answer?.costUsd).toBe(0.0125))

  test('includes the bill of the vendor for a key of one’s own', async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, cost: 0.01, is_byok: true }
    const details = { cost_details: { upstream_inference_cost: 0.2 } }
    expect((await askScript([{ text: 'Hi', usage: { ...usage, ...details } }])).answer?.costUsd).toBeCloseTo(0.21, 9)
    expect((await askScript([{ text: 'Hi', usage: { ...usage, ...details, is_byok: false } }])).answer?.costUsd).toBe(
      0.01,
    )
    expect((await askScript([{ text: 'Hi', usage }])).answer?.costUsd, 'the bill is not known').toBeUndefined()
  })

  test('counts before list prices only where it is known to be a price in USD', () => {
    const catalog = (host: string) =>
      bundledCatalog({ file: new Map([[host, new Map([['m', { name: 'm', price: PRICE }]])]]) })
    const at = (host: string, sent: number) =>
      catalog(host).costOf({ model: 'm', base_url: `https://${host}/v1` }, USAGE, sent)
    expect(at('llm.example.com', 0)).toBeCloseTo(1.1, 9)
    expect(at('openrouter.ai', 0.5)).toBe(0.5)
  })

  test('an answer for which no tokens were counted has no cost, instead of none', () => {
    const none = { ...USAGE, input_tokens: 0, output_tokens: 0 }
    expect(cost(vendor('gpt-5'), none)).toBeUndefined()
    expect(cost(vendor('gpt-5'), { ...none, output_tokens: 1 })).toBeGreaterThan(0)
    expect(cost({ input_cost_per_token: 1, output_cost_per_token: 1 }, none)).toBeUndefined()
  })

  test.each([[-1], ['1'], [1e308], [null]])('is ignored if it cannot be one: %j', async (sent) =>
    expect((await askScript(turn(sent))).answer?.costUsd).toBeUndefined(),
  )
})
