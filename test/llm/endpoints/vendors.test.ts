/** Which vendor a name leads to. Its key goes with the request, so a wrong one would be told to somebody else. */
import { describe, expect, test } from 'vitest'
import { endpointOf } from '../../../src/llm/endpoints/endpoint.ts'
import { configsOf } from '../../../src/llm/targets.ts'
import { VendorKeys } from '../../../src/llm/endpoints/vendor-keys.ts'
import { vendorAt, vendorOfName, vendorOfPrefix, VENDORS } from '../../../src/llm/endpoints/vendors.ts'
import { bundledCatalog } from '../catalog/bundled.ts'

/** Mistral serves them under the names that their makers use. */
const OF_OTHERS = new Set(['deepseek-v4-1-flash-1017', 'glm-5-2'])

const hostOf = (config: Parameters<typeof endpointOf>[0]) => new URL(endpointOf(config).baseUrl).host

describe('a bare name', () => {
  test('of the bundled catalogue leads to the vendor that the catalogue gives it', () => {
    const catalogues = bundledCatalog().catalogues.map(([, models]) => models)
    const named = catalogues.flatMap((models) =>
      [...models].flatMap(([provider, facts]) =>
        vendorOfPrefix(provider)?.servesOthers ? [] : [...facts.values()].map(({ name }) => [name, provider] as const),
      ),
    )
    expect(named.length).toBeGreaterThan(200)
    const others = named.filter(([name, provider]) => vendorOfName(name)?.id !== provider && !OF_OTHERS.has(name))
    expect(others).toEqual([])
  })

  test.each([
    ['gemini-3-pro', 'generativelanguage.googleapis.com'],
    ['grok-5', 'api.x.ai'],
    ['Claude-Opus-5', 'api.anthropic.com'],
    ['gpt-9', 'api.openai.com'],
    ['o3', 'api.openai.com'],
    ['deepseek-chat', 'api.deepseek.com'],
    ['kimi-k3', 'api.moonshot.ai'],
    ['glm-5', 'api.z.ai'],
    ['MiniMax-M3', 'api.minimax.io'],
    ['codestral-latest', 'api.mistral.ai'],
  ])('%s of a known family goes to %s', (model, host) => expect(hostOf({ model })).toBe(host))

  test.each([{ model: 'my-model' }, { model: 'gpt-oss-20b' }, { model: 'openrouter' }, { model: 'Qwen/Qwen3-32B' }])(
    'that nobody is known for goes nowhere: $model',
    (config) => expect(() => endpointOf(config)).toThrow(/says where the model .* openrouter\//),
  )

  test.each([
    [{ model: 'my-model', provider: 'openai' }, 'api.openai.com'],
    [{ model: 'my-model', provider: 'openai_responses' }, 'api.openai.com'],
    [{ model: 'my-model', provider: 'anthropic' }, 'api.anthropic.com'],
    [{ model: 'openai/my-model' }, 'api.openai.com'],
    [{ model: 'my-model', base_url: 'https://llm.example.com/v1' }, 'llm.example.com'],
    // The API of its vendor, in another dialect.
    [{ model: 'claude-opus-5', provider: 'openai' }, 'api.anthropic.com'],
    [{ model: 'gemini-3-pro', provider: 'openai' }, 'generativelanguage.googleapis.com'],
  ] as const)('with more said goes there: %j', (config, host) => expect(hostOf(config)).toBe(host))

  test('of another vendor is not sent to Anthropic because of its provider', () => {
    expect(() => endpointOf({ model: 'gemini-3-pro', provider: 'anthropic' })).toThrow('base_url')
  })
})

describe('the key of a vendor', () => {
  const keys = new VendorKeys({
    OPENAI_API_KEY: ' key-1 ',
    GOOGLE_API_KEY: 'key-2',
    AWS_BEARER_TOKEN_BEDROCK: 'key-3',
    XAI_API_KEY: ' ',
  })

  test.each([
    ['https://api.openai.com/v1', 'key-1'],
    ['https://API.OPENAI.COM:443/other', 'key-1'],
    ['https://generativelanguage.googleapis.com/v1beta/openai', 'key-2'],
    ['https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1', 'key-3'],
    ['https://api.x.ai/v1', undefined],
    ['http://api.openai.com/v1', undefined],
    ['https://api.openai.com:8443/v1', undefined],
    ['https://api.openai.com./v1', undefined],
    ['https://api.openai.com@evil.example.com/v1', undefined],
    ['https://evil.example.com/api.openai.com/v1', undefined],
    ['https://bedrock-runtime.us-west-2.amazonaws.com.evil.example.com/v1', undefined],
    // The buckets of somebody else.
    ['https://bedrock-runtime.s3.amazonaws.com/v1', undefined],
    ['https://bedrock-runtime.s3-us-west-2.amazonaws.com/v1', undefined],
    ['https://bedrock-runtime.us-gov-west-1.amazonaws.com/openai/v1', 'key-3'],
    ['https://evil.example.com/bedrock-runtime.us-west-2.amazonaws.com', undefined],
    ['http://127.0.0.1:11434/v1', undefined],
  ])('for %s is %s', (url, key) => expect(keys.at(url)?.key).toBe(key))

  test('is redacted under each of its variables, of which the first one is used', () => {
    const both = new VendorKeys({ GOOGLE_API_KEY: 'key-2', GEMINI_API_KEY: 'key-1' })
    expect(both.at('https://generativelanguage.googleapis.com/v1beta/openai')?.key).toBe('key-1')
    expect(both.all.map(({ key }) => key)).toEqual(['key-1', 'key-2'])
  })

  test('does not follow a fallback model to another vendor, which is asked with its own key or not at all', () => {
    const config = {
      model: 'gpt-5',
      api_key: 'key-1',
      extra_headers: { authorization: 'Bearer key-1' },
      extra_body: { of: 'openai' },
      fallback_models: ['gpt-4o', 'gemini-3-pro', 'grok-5', 'openai/gpt-4.1'],
    }
    const [, ...others] = configsOf(config, keys)
    expect(others.map((each) => [new URL(endpointOf(each).baseUrl).host, each.api_key])).toEqual([
      ['api.openai.com', 'key-1'],
      ['generativelanguage.googleapis.com', 'key-2'],
      ['api.openai.com', 'key-1'],
      ['api.openai.com', 'key-1'],
    ])
    expect(others[1]).toEqual({ model: 'gemini-3-pro', api_key: 'key-2' })
    // Without keys, and at a gateway, all are asked at the same endpoint.
    expect(new Set(configsOf(config).map((each) => endpointOf(each).baseUrl)).size).toBe(1)
    const gateway = configsOf({ ...config, base_url: 'https://gateway.example.com/v1' }, keys)
    expect(new Set(gateway.map((each) => endpointOf(each).baseUrl)).size).toBe(1)
  })
})

describe('the table of vendors', () => {
  test('has each prefix, and each variable of a key, once', () => {
    const prefixes = VENDORS.flatMap(({ id, otherPrefixes = [] }) => [id, ...otherPrefixes])
    const variables = VENDORS.flatMap(({ keyVariables }) => keyVariables)
    expect(new Set(prefixes).size).toBe(prefixes.length)
    expect(new Set(variables).size).toBe(variables.length)
  })

  test('has https endpoints for all that are not on this machine, and finds the vendor of each', () => {
    for (const vendor of VENDORS) {
      if (vendor.baseUrl === undefined) continue
      expect(new URL(vendor.baseUrl).protocol, vendor.id).toBe(vendor.isLocal ? 'http:' : 'https:')
      expect(vendorAt(vendor.baseUrl), vendor.id).toBe(vendor.isLocal ? undefined : vendor)
    }
  })

  test.each([
    ['https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1', 'bedrock'],
    ['https://bedrock-mantle.us-east-1.api.aws/v1', 'bedrock'],
    ['https://bedrock-runtime.eu-west-1.amazonaws.com.example.com/openai/v1', undefined],
    ['https://bedrock-runtime.eu-west-1.amazonaws.com:8443/openai/v1', undefined],
    ['https://api.openai.com:8443/v1', undefined],
    ['https://api.openai.com.example.com/v1', undefined],
  ])('knows whose host %s is', (url, id) => expect(vendorAt(url)?.id).toBe(id))
})
