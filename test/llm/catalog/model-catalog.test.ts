/** What the server knows about models by the bundled catalogue: windows, levels of reasoning, and whose prices hold. */
import { describe, expect, test } from 'vitest'
import { MODEL_CATALOG, readAsset } from '../../../src/http/assets.ts'
import { ModelCatalog } from '../../../src/llm/catalog/model-catalog.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, chatWith } from '../asking.ts'
import { bundledCatalog } from './bundled.ts'

const GATEWAY = 'https://gateway.example.com/v1'

describe('the bundled catalogue', () => {
  test('has at most 60 kB', () => expect(readAsset(MODEL_CATALOG).length).toBeLessThanOrEqual(60_000))

  test('has a window and plausible prices for each of its models', () => {
    const bundle = JSON.parse(readAsset(MODEL_CATALOG).toString()) as Record<string, Record<string, unknown[]>>
    const rows = Object.values(bundle).flatMap((models) => Object.values(models))
    expect(rows.length).toBeGreaterThan(200)
    for (const [window, , price] of rows) {
      expect(window).toBeGreaterThanOrEqual(4000)
      for (const usd of (price as number[] | null) ?? []) expect(usd).toBeLessThan(1000)
    }
  })

  test('is read at its first use', () => {
    let reads = 0
    const readBundled = () => {
      reads++
      return '{}'
    }
    const catalog = new ModelCatalog({ readBundled })
    expect(catalog.windowOf({ model: 'gpt-5', context_window: 9000 })).toBe(9000)
    catalog.withOwnEffort({ model: 'gpt-5', reasoning_effort: 'high' })
    catalog.costOf(
      { model: 'openrouter/x/y' },
      { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 },
      1,
    )
    expect(reads).toBe(0)
    catalog.windowOf({ model: 'gpt-5' })
    catalog.windowOf({ model: 'claude-opus-5' })
    expect(reads).toBe(1)
  })
})

describe('the window', () => {
  test.each([
    ['of a model at its vendor', { model: 'claude-opus-4-6' }, 1_000_000],
    ['of a dated name', { model: 'claude-opus-4-5-20251101' }, 200_000],
    ['of a name with a provider', { model: 'gemini/gemini-2.5-pro' }, 1_048_576],
    ['without the output, for the models of OpenAI', { model: 'gpt-5.5' }, 922_000],
    ['of the same model at a gateway', { model: 'claude-sonnet-5', base_url: GATEWAY }, 1_000_000],
    ['of a name with a vendor and a dot', { model: 'openrouter/anthropic/claude-opus-4.6' }, 1_000_000],
    ['of a name with a tag', { model: 'openrouter/deepseek/deepseek-v3.2:free' }, 163_840],
    ['of a new model of a known family', { model: 'claude-opus-9' }, 200_000],
    ['of open weights', { model: 'qwen3-coder:30b', base_url: GATEWAY }, 262_144],
    ['of the configuration', { model: 'claude-opus-5', context_window: 50_000 }, 50_000],
    ['of an unknown model', { model: 'constructor', base_url: GATEWAY }, undefined],
  ])('%s', (_of, config, tokens) => expect(bundledCatalog().windowOf(config)).toBe(tokens))
})

describe('the level of reasoning', () => {
  test.each([
    ['claude-opus-5', 'max', 'max'],
    ['claude-opus-4-6', 'xhigh', 'high'],
    ['gpt-5.4', 'max', 'xhigh'],
    ['gpt-5', 'max', 'high'],
    ['gpt-6-sol', 'max', 'max'],
    ['claude-opus-4-5', 'max', 'max'],
    ['unknown-model', 'max', 'max'],
    ['gpt-5', 'low', 'low'],
  ] as const)('%s with %s is asked for %s', (model, reasoning_effort, expected) => {
    const config = { model, reasoning_effort }
    expect(bundledCatalog().withOwnEffort(config).reasoning_effort).toBe(expected)
  })

  test('is sent as the model has it', async () => {
    await using model = await startScriptedModel([{ text: 'Hi' }])
    const llm = chatWith(
      model,
      { model: 'm', reasoning_effort: 'max' },
      { catalog: bundledCatalog({ file: new Map([['', new Map([['m', { name: 'm', efforts: ['low', 'high'] }]])]]) }) },
    )
    expect((await ask(llm)).error).toBeUndefined()
    expect(model.requests[0]).toMatchObject({ body: { reasoning_effort: 'high' } })
  })
})

describe('the cost of answers', () => {
  test.each([
    ['is known of a model at its vendor', { model: 'gpt-5' }, true],
    ['is not known of the same model at a gateway', { model: 'gpt-5', base_url: GATEWAY }, false],
    ['is known at an endpoint that reports it', { model: 'openrouter/some/model' }, true],
    [
      'is known with both prices',
      { model: 'm', base_url: GATEWAY, input_cost_per_token: 0, output_cost_per_token: 0 },
      true,
    ],
    ['is not known with one price', { model: 'm', base_url: GATEWAY, input_cost_per_token: 1e-6 }, false],
    ['is not known without an endpoint', { model: 'azure/gpt-5' }, false],
  ])('%s', (_what, config, isKnown) => expect(bundledCatalog().knowsCost(config)).toBe(isKnown))
})
