/** GET /models: what is known about models and where it is from; and how full the window of a conversation is. */
import { describe, expect, test } from 'vitest'
import { KnownModels } from '../../src/conversations/known-models.ts'
import { bundledCatalog } from '../llm/catalog/bundled.ts'
import { say } from '../conversations/fixtures.ts'
import { setHttp } from './fixtures.ts'

const KNOWN = { model: 'claude-opus-4-5', provider: 'anthropic', context_window: 200_000, input_cost_per_token: 5e-6 }

test('lists the models of the catalogue, by provider and name, in pages', async () => {
  await using http = await setHttp()
  const { body: all } = await http.call('GET', '/models?limit=1000')
  expect(all.next_page_id).toBeNull()
  expect(all.items.length).toBeGreaterThan(200)
  expect(all.items).toContainEqual(expect.objectContaining(KNOWN))
  const paged: unknown[] = []
  for (let page = ''; ;) {
    const { body } = await http.call('GET', `/models?limit=100${page}`)
    paged.push(...body.items)
    if (body.next_page_id === null) break
    page = `&page_id=${encodeURIComponent(body.next_page_id)}`
  }
  expect(paged).toEqual(all.items)
})

test('finds models by provider and by a part of the name', async () => {
  await using http = await setHttp()
  const { body } = await http.call('GET', '/models?provider=anthropic&q=OPUS-4-5')
  expect(body.items).toEqual([
    {
      ...KNOWN,
      max_output_tokens: 64_000,
      output_cost_per_token: 2.5e-5,
      cache_read_cost_per_token: 5e-7,
      cache_write_cost_per_token: 6.25e-6,
      sources: { context_window: 'bundle', max_output_tokens: 'bundle', prices: 'bundle' },
    },
  ])
  expect((await http.call('GET', '/models?q=gpt-5.4&limit=1')).body.items).toEqual([
    expect.objectContaining({
      price_tiers: [expect.objectContaining({ above_input_tokens: 272_000 })],
      reasoning_efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    }),
  ])
  expect((await http.call('GET', '/models?page_id=anthropic/zzz')).body.items[0].provider).not.toBe('anthropic')
})

test('says what the file of the operator and the default model of the server add', async () => {
  const opus = { name: 'claude-opus-4-5', window: 150_000 }
  const own = { name: 'ours', window: 9000, efforts: ['low'] as const }
  const catalog = bundledCatalog({
    file: new Map([
      ['anthropic', new Map([['claude-opus-4-5', opus]])],
      ['', new Map([['ours', own]])],
    ]),
  })
  const manager = { list: () => Promise.reject(new Error('is not asked')) }
  const defaults = { model: 'served', base_url: 'http://127.0.0.1:8001/v1', api_key: 'secret' }
  const models = new KnownModels({ catalog, defaults, manager })
  const found = async (q: string) => (await models.page({ q, limit: 10 })).items
  expect(await found('claude-opus-4-5')).toEqual([
    expect.objectContaining({
      context_window: 150_000,
      max_output_tokens: 64_000,
      sources: { context_window: 'file', max_output_tokens: 'bundle', prices: 'bundle' },
    }),
  ])
  expect(await found('ours')).toEqual([
    {
      model: 'ours',
      provider: '',
      context_window: 9000,
      reasoning_efforts: ['low'],
      sources: { context_window: 'file' },
    },
  ])
  expect(await found('served')).toEqual([{ model: 'served', provider: '127.0.0.1:8001', sources: {} }])
})

describe('a limited key', () => {
  test('sees the models of the conversations that it sees', async () => {
    await using http = await setHttp()
    const llm_config = {
      model: 'mine-1',
      base_url: 'https://gateway.example.com/v1',
      context_window: 9000,
      fallback_models: ['claude-opus-4-5'],
      input_cost_per_token: 1e-6,
      output_cost_per_token: 2e-6,
    }
    await http.create({ user_id: 'me', llm_config, compaction: { model: 'mine-2' } })
    await http.create({ user_id: 'you', llm_config: { ...llm_config, model: 'yours' } })
    const { body } = await http.call('POST', '/keys', { name: 'mine', scopes: ['read'], user_id: 'me' })
    const list = await http.call('GET', '/models', undefined, { authorization: `Bearer ${body.key}` })
    expect(list.body.items).toEqual([
      {
        model: 'claude-opus-4-5',
        provider: 'gateway.example.com',
        context_window: 200_000,
        sources: { context_window: 'bundle' },
      },
      {
        model: 'mine-1',
        provider: 'gateway.example.com',
        context_window: 9000,
        input_cost_per_token: 1e-6,
        output_cost_per_token: 2e-6,
        cache_read_cost_per_token: 1e-6,
        cache_write_cost_per_token: 1e-6,
        sources: { context_window: 'config', prices: 'config' },
      },
      { model: 'mine-2', provider: 'gateway.example.com', sources: {} },
    ])
  })

  test('needs the scope read', async () => {
    await using http = await setHttp()
    const { body } = await http.call('POST', '/keys', { name: 'writes', scopes: ['write'] })
    expect((await http.call('GET', '/models', undefined, { authorization: `Bearer ${body.key}` })).status).toBe(403)
  })
})

test('a view says how full the context is, also in lists and after a restart', async () => {
  const usage = { prompt_tokens: 700, completion_tokens: 50, completion_tokens_details: { reasoning_tokens: 20 } }
  await using http = await setHttp({ script: [{ text: 'Hello.', usage }] })
  const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'key-of-the-model' }
  const id = await http.create({ llm_config: { ...llm_config, context_window: 9000 } })
  const unknown = await http.create({ llm_config })
  const contextOf = async (of: string) => (await http.call('GET', `/conversations/${of}`)).body.context
  expect(await contextOf(id)).toEqual({ used: 0, size: 9000 })
  expect(await contextOf(unknown)).toEqual({ used: 0 })
  await say(await http.bench.manager.open(id))
  expect(await contextOf(id)).toEqual({ used: 730, size: 9000 })
  await http.bench.restart()
  const { items } = await http.bench.manager.list({ sort: 'created_at', order: 'asc', limit: 10 })
  expect(items.map(({ context }) => context)).toEqual([{ used: 730, size: 9000 }, { used: 0 }])
  expect(await http.bench.manager.pages.viewWithoutOpening(id)).toMatchObject({ context: { used: 730, size: 9000 } })
})
