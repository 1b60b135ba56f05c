/** Limits from an endpoint's own list of models, over real HTTP. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { LlmConfig } from '../../../src/contract/values/llm-config.ts'
import { EndpointLimits } from '../../../src/llm/catalog/endpoint-limits.ts'
import { HttpLlm } from '../../../src/llm/http-llm.ts'
import { createPooledFetch } from '../../../src/llm/connection/pooled-fetch.ts'
import { ask } from '../asking.ts'
import { bundledCatalog } from './bundled.ts'

const ANSWER = [
  'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n',
  'data: [DONE]\n\n',
].join('')

/** Answers each request for a list by its path; a text is sent as it is, and `hangs` sends nothing. */
async function serve(lists: Record<string, unknown>) {
  const asked: { readonly path: string; readonly key: string | undefined }[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    request.resume()
    if (path.endsWith('/chat/completions'))
      return void response.setHeader('content-type', 'text/event-stream').end(ANSWER)
    asked.push({ path, key: request.headers.authorization })
    const list = lists[path]
    if (list === 'hangs') return
    if (list === undefined) return void response.writeHead(404).end('{}')
    response.end(typeof list === 'string' ? list : JSON.stringify(list))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const catalogThatAsks = () => bundledCatalog({ limits: new EndpointLimits() })

async function answer(config: LlmConfig, catalog = catalogThatAsks()) {
  const heard = await ask(new HttpLlm({ config: { num_retries: 0, ...config }, catalog, fetch: createPooledFetch() }))
  expect(heard.answer?.text).toBe('Hi')
  return catalog
}

describe('the window is read from the list of', () => {
  test.each<[string, Record<string, unknown>, number, number | undefined]>([
    ['vLLM', { '/v1/models': { data: [{ id: 'm/x', max_model_len: 40_960 }] } }, 40_960, undefined],
    [
      'OpenRouter',
      {
        '/v1/models': {
          data: [
            { id: 'other', context_length: 1 },
            {
              id: 'm/X',
              context_length: 90_000,
              top_provider: { context_length: 80_000, max_completion_tokens: 9000 },
            },
          ],
        },
      },
      80_000,
      9000,
    ],
    [
      'LM Studio',
      {
        '/v1/models': { data: [{ id: 'm/x', owned_by: 'organization_owner' }] },
        '/api/v0/models': { data: [{ id: 'm/x', loaded_context_length: 8192, max_context_length: 131_072 }] },
      },
      8192,
      undefined,
    ],
    [
      'Ollama',
      {
        '/v1/models': { data: [{ id: 'm/x', owned_by: 'library' }] },
        '/api/ps': { models: [{ name: 'm/x', context_length: 4096 }] },
      },
      4096,
      undefined,
    ],
  ])('%s', async (_server, lists, window, maxOutput) => {
    await using endpoint = await serve(lists)
    const config = { model: 'm/x', base_url: endpoint.baseUrl, api_key: 'key-of-the-model' }
    const catalog = await answer(config)
    await expect.poll(() => catalog.knownWindow(config)).toEqual({ value: window, source: 'endpoint' })
    expect(catalog.knownMaxOutput(config)?.value).toBe(maxOutput)
    expect(endpoint.asked.map(({ path }) => path)).toEqual(Object.keys(lists))
    expect(new Set(endpoint.asked.map(({ key }) => key))).toEqual(new Set(['Bearer key-of-the-model']))
  })
})

test('the list takes precedence over what is known by the name alone', async () => {
  await using endpoint = await serve({ '/v1/models': { data: [{ id: 'claude-opus-5', max_model_len: 30_000 }] } })
  const config = { model: 'claude-opus-5', base_url: endpoint.baseUrl }
  const catalog = await answer(config)
  await expect.poll(() => catalog.windowOf(config)).toBe(30_000)
})

test('an endpoint is asked once for all its models', async () => {
  await using endpoint = await serve({ '/v1/models': { data: [{ id: 'one', max_model_len: 30_000 }] } })
  const one = { model: 'one', base_url: endpoint.baseUrl }
  const catalog = await answer(one)
  await answer({ ...one, model: 'two' }, catalog)
  await answer({ ...one }, catalog)
  await expect.poll(() => catalog.windowOf(one)).toBe(30_000)
  expect(endpoint.asked).toHaveLength(1)
})

test('an endpoint is not asked if its window is known', async () => {
  await using endpoint = await serve({})
  const { host } = new URL(endpoint.baseUrl)
  const file = new Map([[host, new Map([['m', { name: 'm', window: 50_000 }]])]])
  const catalog = bundledCatalog({ file, limits: new EndpointLimits() })
  await answer({ model: 'm', base_url: endpoint.baseUrl }, catalog)
  await answer({ model: 'other', base_url: endpoint.baseUrl, context_window: 9000 }, catalog)
  await answer({ model: 'third', base_url: endpoint.baseUrl }, bundledCatalog())
  expect(endpoint.asked).toEqual([])
})

test('only the beginning of a long list is kept, without endless names', async () => {
  const numbered = Array.from({ length: 20_000 }, (_, at) => ({ id: `m${at}`, max_model_len: 9000 }))
  const data = [{ id: 'x'.repeat(1000), max_model_len: 9000 }, ...numbered]
  await using endpoint = await serve({ '/v1/models': { data } })
  const config = (model: string) => ({ model, base_url: endpoint.baseUrl })
  const catalog = await answer(config('m0'))
  await expect.poll(() => catalog.windowOf(config('m0'))).toBe(9000)
  expect(catalog.windowOf(config('m19999'))).toBeUndefined()
  expect(catalog.windowOf(config('x'.repeat(1000)))).toBeUndefined()
})

test('an endpoint chooses no path that is asked', async () => {
  await using endpoint = await serve({
    '/v1/models': { data: [{ id: 'm', owned_by: 'constructor', max_model_len: 9000 }] },
  })
  const config = { model: 'm', base_url: endpoint.baseUrl }
  const catalog = await answer(config)
  await expect.poll(() => catalog.windowOf(config)).toBe(9000)
  expect(endpoint.asked.map(({ path }) => path)).toEqual(['/v1/models'])
})

describe('no answer waits or fails, and nothing is known, if the list', () => {
  test.each<[string, unknown]>([
    ['does not exist', undefined],
    ['does not come', 'hangs'],
    ['is not JSON', 'models'],
    ['is something else', { data: 5 }],
    ['has windows that cannot be right', { data: [{ id: 'm', max_model_len: -1 }, null, 7] }],
    ['is longer than a list can be', `{"data":["${'x'.repeat(5 * 1024 * 1024)}"]}`],
    ['is deeper than a list can be', '['.repeat(10_000)],
  ])('%s', async (_what, list) => {
    await using endpoint = await serve({ '/v1/models': list })
    const config = { model: 'm', base_url: endpoint.baseUrl }
    const catalog = await answer(config)
    await expect.poll(() => endpoint.asked.length).toBe(1)
    await answer({ ...config }, catalog)
    expect(catalog.windowOf(config)).toBeUndefined()
  })
})
