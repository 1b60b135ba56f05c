import { describe, expect, test } from 'vitest'
import { endpointOf } from '../../../src/llm/endpoints/endpoint.ts'
import { isOpenAiReasoningModel, seemsToLackTools } from '../../../src/llm/endpoints/models.ts'

describe('the model name', () => {
  test.each([
    ['gpt-5', undefined, 'gpt-5', 'https://api.openai.com/v1'],
    ['openai/gpt-5', undefined, 'gpt-5', 'https://api.openai.com/v1'],
    ['openai/gpt-5', 'https://api.openai.com/v1', 'gpt-5', 'https://api.openai.com/v1'],
    ['openai/my-model', 'http://127.0.0.1:8000/v1', 'my-model', 'http://127.0.0.1:8000/v1'],
    ['Qwen/Qwen3-32B', 'http://127.0.0.1:8000/v1', 'Qwen/Qwen3-32B', 'http://127.0.0.1:8000/v1'],
    ['openai/gpt-oss-120b', 'http://127.0.0.1:8000/v1', 'openai/gpt-oss-120b', 'http://127.0.0.1:8000/v1'],
    ['openai/gpt-oss:20b', 'http://127.0.0.1:11434/v1', 'gpt-oss:20b', 'http://127.0.0.1:11434/v1'],
    ['openai/gpt-5', 'https://openrouter.ai/api/v1', 'openai/gpt-5', 'https://openrouter.ai/api/v1'],
    ['openrouter/openai/gpt-5', undefined, 'openai/gpt-5', 'https://openrouter.ai/api/v1'],
    ['groq/openai/gpt-oss-120b', undefined, 'openai/gpt-oss-120b', 'https://api.groq.com/openai/v1'],
    ['ollama/llama3.2', undefined, 'llama3.2', 'http://127.0.0.1:11434/v1'],
    ['ollama/llama3.2', 'http://127.0.0.1:11434', 'llama3.2', 'http://127.0.0.1:11434/v1'],
  ])('%s at %s goes as %s', (model, base_url, sent, baseUrl) => {
    expect(endpointOf({ model, ...(base_url && { base_url }) })).toMatchObject({ model: sent, baseUrl })
  })

  test('loses the provider that custom_llm_provider names', () => {
    const config = { model: 'acme/big', custom_llm_provider: 'acme', base_url: 'https://llm.example.com/v1' }
    expect(endpointOf(config).model).toBe('big')
  })
})

describe('the provider', () => {
  test.each([
    [{ model: 'gpt-5' }, 'openai_responses'],
    [{ model: 'openai/o3', base_url: 'https://api.openai.com/v1' }, 'openai_responses'],
    [{ model: 'gpt-4o' }, 'openai'],
    [{ model: 'gpt-5', provider: 'openai' }, 'openai'],
    [{ model: 'gpt-5', base_url: 'https://llm.example.com/v1' }, 'openai'],
    [{ model: 'claude-sonnet-5', base_url: 'https://llm.example.com/v1' }, 'openai'],
    [{ model: 'claude-sonnet-5', base_url: 'https://llm.example.com', provider: 'anthropic' }, 'anthropic'],
    [{ model: 'claude-sonnet-5', base_url: 'https://api.anthropic.com' }, 'anthropic'],
    [{ model: 'openrouter/anthropic/claude-sonnet-5' }, 'openai'],
    [{ model: 'azure/gpt-5', base_url: 'https://example.openai.azure.com' }, 'openai'],
  ] as const)('of %j is %s', (config, provider) => expect(endpointOf(config).provider).toBe(provider))

  test.each([
    [{ model: 'claude-sonnet-5' }, 'claude-sonnet-5'],
    [{ model: 'anthropic/claude-sonnet-5' }, 'claude-sonnet-5'],
    [{ model: 'my-model', provider: 'anthropic' }, 'my-model'],
  ] as const)('of %j is Anthropic, at its own endpoint, with its own headers', (config, model) => {
    const endpoint = endpointOf({ ...config, api_key: 'k', api_version: '2024-01-01' })
    expect(endpoint).toMatchObject({ provider: 'anthropic', model, baseUrl: 'https://api.anthropic.com/v1', query: {} })
    expect(endpoint.headers).toMatchObject({ 'x-api-key': 'k', 'anthropic-version': '2024-01-01' })
    expect(endpoint.headers).not.toHaveProperty('authorization')
  })
})

describe('the headers', () => {
  test('carry the key, and none where there is none', () => {
    expect(endpointOf({ model: 'gpt-5', api_key: 'k' }).headers).toMatchObject({ authorization: 'Bearer k' })
    expect(endpointOf({ model: 'ollama/llama3' }).headers).not.toHaveProperty('authorization')
  })

  test('for Azure have its own key header, with the version in the query and the deployment in the path', () => {
    const config = {
      model: 'azure/gpt-5',
      api_key: 'k',
      api_version: '2025-04-01-preview',
      base_url: 'https://example.openai.azure.com',
    }
    const endpoint = endpointOf(config)
    expect(endpoint.headers).toMatchObject({ 'api-key': 'k' })
    expect(endpoint.headers).not.toHaveProperty('authorization')
    expect(endpoint.query).toEqual({ 'api-version': '2025-04-01-preview' })
    expect(endpoint.baseUrl).toBe('https://example.openai.azure.com/openai/deployments/gpt-5')
  })

  test('are replaced by extra_headers of the same name', () => {
    const { headers } = endpointOf({ model: 'gpt-5', api_key: 'k', extra_headers: { Authorization: 'Custom x' } })
    expect(headers['authorization']).toBe('Custom x')
    expect(headers).not.toHaveProperty('Authorization')
  })
})

describe('the model name selects', () => {
  test.each(['o1', 'o3-mini', 'gpt-5', 'openai/gpt-5.1-codex', 'gpt-6'])('%s refuses max_tokens', (model) => {
    expect(isOpenAiReasoningModel(model)).toBe(true)
  })

  test.each(['gpt-4o', 'gpt-4.1', 'gpt-oss-120b', 'gpt-50b', 'olmo', 'qwen3'])('%s does not', (model) => {
    expect(isOpenAiReasoningModel(model)).toBe(false)
  })

  test('old models are known to lack tools, and unknown ones are given the benefit of the doubt', () => {
    for (const model of ['text-davinci-003', 'openai/o1-mini', 'ollama/llama2', 'codellama:7b', 'gemma-2-9b-it'])
      expect(seemsToLackTools(model), model).toBe(true)
    for (const model of [
      'gpt-5',
      'o1',
      'claude-sonnet-4-5',
      'llama3.2',
      'Qwen/Qwen3-32B',
      'gemma-3-27b',
      'phi-4',
      'new',
    ])
      expect(seemsToLackTools(model), model).toBe(false)
  })
})
