/** The operator's file of models: its two forms, what it takes precedence over, and what stops the start. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/config/environment.ts'
import { readModelCatalog } from '../../src/config/model-catalog.ts'
import type { LlmConfig } from '../../src/contract/values/llm-config.ts'
import { allBlocks } from '../docs/blocks.ts'
import { bundledCatalog } from '../llm/catalog/bundled.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catalog-'))
})
afterAll(() => rm(folder, { recursive: true }))

let files = 0
async function fileWith(content: string | object): Promise<string> {
  const path = join(folder, `${files++}-models.json`)
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const catalogOf = async (content: object) => bundledCatalog({ file: await readModelCatalog(await fileWith(content)) })

const USAGE = { input_tokens: 1_000_000, output_tokens: 100_000, cached_tokens: 500_000, reasoning_tokens: 0 }
const GATEWAY = 'https://gateway.example.com/v1'

const LITELLM = {
  sample_spec: { max_input_tokens: 'a sentence' },
  'claude-opus-5': {
    litellm_provider: 'anthropic',
    mode: 'chat',
    max_input_tokens: 500_000,
    input_cost_per_token: 4e-6,
    output_cost_per_token: 2e-5,
    cache_read_input_token_cost: 4e-7,
    input_cost_per_token_above_200k_tokens: 8e-6,
    output_cost_per_token_above_200k_tokens: 3e-5,
  },
  'text-embedding-9': { litellm_provider: 'openai', mode: 'embedding', max_input_tokens: -1 },
  'groq/openai/gpt-oss-120b': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 },
  'ours-1': { max_tokens: 32_768, input_cost_per_token: 0, output_cost_per_token: 0, reasoning_effort_levels: ['low'] },
  'hosted_vllm/ours-2': { max_input_tokens: 64_000 },
}

const MODELS_DEV = {
  anthropic: {
    models: { 'claude-opus-5': { limit: { context: 600_000, output: 64_000 }, cost: { input: 4, output: 20 } } },
  },
  google: { models: { 'gemini-9': { limit: { context: 2_000_000, input: 1_900_000 } } } },
  ours: {
    api: GATEWAY,
    models: {
      'm-1': {
        limit: { context: 50_000 },
        cost: { input: 1, output: 2, cache_read: 0.5, context_over_200k: { input: 2, output: 4 } },
        reasoning_options: [{ type: 'effort', values: ['low', 'high', 'max'] }],
      },
    },
  },
}

describe('a file in the form of LiteLLM', () => {
  test.each<[string, LlmConfig, number | undefined, number | undefined]>([
    ['takes precedence over the bundled catalogue', { model: 'claude-opus-5' }, 500_000, 4 + 4 + 3],
    ['leaves the other models', { model: 'claude-sonnet-5' }, 1_000_000, 1 + 0.1 + 1],
    ['has prices of a host', { model: 'groq/openai/gpt-oss-120b' }, 131_072, 1.1],
    ['has models of any endpoint', { model: 'ours-1', base_url: GATEWAY }, 32_768, 0],
    ['but not of the hosts of vendors', { model: 'ours-1' }, 32_768, undefined],
    ['has models of any server', { model: 'ours-2', base_url: 'http://127.0.0.1:8001/v1' }, 64_000, undefined],
    ['is behind the configuration', { model: 'claude-opus-5', context_window: 9000 }, 9000, 11],
    ['is not for the same name elsewhere', { model: 'claude-opus-5', base_url: GATEWAY }, 500_000, undefined],
  ])('%s', async (_what, config, window, usd) => {
    const catalog = await catalogOf(LITELLM)
    expect(catalog.windowOf(config)).toBe(window)
    const cost = catalog.costOf(config, USAGE, undefined)
    if (usd === undefined) expect(cost).toBeUndefined()
    else expect(cost).toBeCloseTo(usd, 9)
  })

  test('says where a value is from', async () => {
    const catalog = await catalogOf(LITELLM)
    expect(catalog.knownWindow({ model: 'claude-opus-5' })).toEqual({ value: 500_000, source: 'file' })
    expect(catalog.knownMaxOutput({ model: 'claude-opus-5' })).toEqual({ value: 128_000, source: 'bundle' })
    expect(catalog.knownEfforts({ model: 'ours-1', base_url: GATEWAY })).toEqual(['low'])
  })
})

describe('a file in the form of models.dev', () => {
  test.each<[string, LlmConfig, number, number | undefined]>([
    ['takes precedence over the bundled catalogue', { model: 'claude-opus-5' }, 600_000, 2 + 2 + 2],
    ['has the input of a window', { model: 'gemini/gemini-9' }, 1_900_000, undefined],
    ['has prices of a gateway', { model: 'm-1', base_url: GATEWAY }, 50_000, 1 + 1 + 0.4],
  ])('%s', async (_what, config, window, usd) => {
    const catalog = await catalogOf(MODELS_DEV)
    expect(catalog.windowOf(config)).toBe(window)
    const cost = catalog.costOf(config, USAGE, undefined)
    if (usd === undefined) expect(cost).toBeUndefined()
    else expect(cost).toBeCloseTo(usd, 9)
  })

  test('has levels of reasoning', async () => {
    const config = { model: 'm-1', base_url: GATEWAY, reasoning_effort: 'xhigh' } as const
    expect((await catalogOf(MODELS_DEV)).withOwnEffort(config).reasoning_effort).toBe('high')
  })
})

test('the files on docs/models.md are read', async () => {
  const shown = allBlocks().filter(({ language }) => language === 'json catalog')
  const read = await Promise.all(shown.map(({ text }) => catalogOf(JSON.parse(text) as object)))
  const [ofLiteLlm, ofModelsDev] = read.map(
    (catalog) => (config: LlmConfig) => catalog.costOf(config, USAGE, undefined),
  )
  expect(ofLiteLlm!({ model: 'claude-opus-5' })).toBeCloseTo(2.25 + 0.225 + 2.25, 9)
  expect(ofModelsDev!({ model: 'claude-opus-5', base_url: GATEWAY })).toBeCloseTo(2.25 + 0.225 + 2.25, 9)
})

describe('the start is refused for', () => {
  const refusal = async (path: string) => {
    const error: unknown = await readModelCatalog(path).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }

  test.each<[string, string | object, RegExp]>([
    ['text', 'models: []', /models\.json is not JSON\.$/],
    ['a list', [], /is not a JSON object/],
    ['an empty file', {}, /has no models/],
    ['more than 8 MiB', ' '.repeat(8 * 1024 * 1024 + 1), /has more than 8388608 bytes/],
    ['a negative window', { m1: { max_input_tokens: -5 } }, /"m1" has a wrong value: max_input_tokens must be a whole/],
    ['a window in words', { m1: { max_input_tokens: '200k' } }, /"m1" has a wrong value: max_input_tokens/],
    ['a price of a million tokens', { m1: { input_cost_per_token: 3 } }, /"m1".*input_cost_per_token.* for one token/],
    [
      'a wrong price of long requests',
      { m1: { input_cost_per_token_above_200k_tokens: -1 } },
      /"m1" has a wrong value: input_cost_per_token_above_200k_tokens/,
    ],
    ['an entry that is no object', { m1: 5 }, /"m1" is not usable/],
    [
      'a negative price at models.dev',
      { p: { models: { m1: { cost: { input: -1, output: 2 } } } } },
      /"p\/m1" has a wrong value: cost\.input must be a number from 0 to 10000, in USD for a million tokens/,
    ],
    ['an address that is none', { p: { api: 'here', models: { m1: {} } } }, /"p" has a wrong value: api must be a URL/],
  ])('%s', async (_what, content, message) => {
    expect(await refusal(await fileWith(content))).toMatch(message)
  })

  test('a file that does not exist, and a directory', async () => {
    expect(await refusal(join(folder, 'gone.json'))).toMatch(/gone\.json cannot be read \(ENOENT\)/)
    expect(await refusal(folder)).toMatch(/is not a file/)
  })

  test('a path that is a pipe, without waiting for its writer', async () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(await refusal(pipe)).toMatch(/is not a file/)
  })
})
