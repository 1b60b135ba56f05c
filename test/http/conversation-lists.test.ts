/** Lists of conversations as a page shows them: sorted by their last change, by several statuses, as short rows. */
import { expect, test } from 'vitest'
import { ListConversations } from '../../src/contract/conversation.ts'
import { ConversationSummaries } from '../../src/contract/conversations/summary.ts'
import { call as toolCall, gate, MODEL_KEY } from '../conversations/fixtures.ts'
import type { HttpBench } from './fixtures.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const inside = (http: HttpBench, fields: object) => ({
  llm_config: { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 0 },
  run: true,
  ...fields,
})

const post = async (http: HttpBench, fields: object) =>
  (await http.call('POST', '/conversations', inside(http, fields))).body

async function idsOf(http: HttpBench, query: string): Promise<string[]> {
  const { status, body, text } = await http.call('GET', `/conversations?${query}`)
  expect(status, text).toBe(200)
  const rows = await http.call('GET', `/conversations/summaries?${query}`)
  const ids = body.items.map(({ id }: { id: string }) => id)
  expect(ConversationSummaries.parse(rows.body).items.map(({ id }) => id)).toEqual(ids)
  return ids
}

test('sorted by the last change, the conversation that changed last is first, on every page', async () => {
  await using http = await setHttp()
  const ids = [await http.create(), await http.create(), await http.create()]
  expect(await idsOf(http, 'sort=updated_at')).toEqual(ids.toReversed())
  await http.call('PUT', `/conversations/${ids[0]}/config`, { title: 'changed' })
  const sorted = [ids[0], ids[2], ids[1]]
  expect(await idsOf(http, 'sort=updated_at')).toEqual(sorted)
  expect(await idsOf(http, 'sort=updated_at&order=asc')).toEqual(sorted.toReversed())
  expect(await idsOf(http, '')).toEqual(ids.toReversed())
  const first = (await http.call('GET', '/conversations?sort=updated_at&limit=2')).body
  expect(await idsOf(http, `sort=updated_at&limit=2&page_id=${first.next_page_id}`)).toEqual([ids[1]])
  expectProblem(await http.call('GET', `/conversations?page_id=${first.next_page_id}`), 400, 'invalid_cursor')
})

test('a list can have several statuses, one model, and what is archived or not; counts tell the statuses apart', async () => {
  await using http = await setHttp()
  const idle = await http.create({ llm_config: { model: 'other', base_url: http.bench.model.baseUrl, api_key: 'k' } })
  const ended = (await post(http, { initial_message: 'Say hello.', wait: true })).id
  const failed = (
    await post(http, {
      initial_message: 'Say hello.',
      wait: true,
      llm_config: { model: 'gone', base_url: 'http://127.0.0.1:1', api_key: 'k', num_retries: 0 },
    })
  ).id
  expect(await idsOf(http, 'status=error')).toEqual([failed])
  expect(await idsOf(http, 'status=error,idle&order=asc')).toEqual([idle, ended, failed])
  expect(await idsOf(http, 'status=error&status=running')).toEqual([failed])
  expect(await idsOf(http, 'model=other')).toEqual([idle])
  const count = async (query: string) => (await http.call('GET', `/conversations/count?${query}`)).body
  expect(await count('by=status')).toEqual({ count: 3, by_status: { idle: 2, error: 1 } })
  expect(await count('by=status&status=error,running')).toEqual({ count: 1, by_status: { error: 1 } })
  await http.call('PUT', `/conversations/${ended}/config`, { archived: true })
  expect(await idsOf(http, 'archived=true')).toEqual([ended])
  expect(await idsOf(http, 'archived=false&order=asc')).toEqual([idle, failed])
  expect(await count('by=status&archived=false')).toEqual({ count: 2, by_status: { idle: 1, error: 1 } })
  await http.call('PUT', `/conversations/${failed}/config`, { archived: true })
  await http.call('PUT', `/conversations/${failed}/config`, { archived: false })
  expect(await idsOf(http, 'archived=true')).toEqual([ended])
  expectProblem(await http.call('GET', '/conversations?status=idle,asleep'), 400, 'invalid_request')
  await http.bench.restart()
  const archived = await http.bench.manager.list(ListConversations.parse({ archived: 'true' }))
  expect(archived.items.map(({ id }) => id)).toEqual([ended])
})

test('counts tell labels, models and users apart, the most frequent first, and count nothing that a key may not see', async () => {
  await using http = await setHttp()
  const other = { model: 'other', base_url: http.bench.model.baseUrl, api_key: 'k' }
  const seen = await http.create({ labels: ['nightly', '__proto__'], user_id: 'ada' })
  await http.create({ labels: ['nightly'], user_id: 'ada', llm_config: other })
  await http.create({ labels: ['secret'], user_id: 'grace' })
  await http.create()
  const count = async (query: string, key?: string) =>
    (await http.call('GET', `/conversations/count?${query}`, undefined, key ? { authorization: `Bearer ${key}` } : {}))
      .body
  expect(await count('by=label,model&by=user_id')).toEqual({
    count: 4,
    by_label: [
      { value: 'nightly', count: 2 },
      { value: '__proto__', count: 1 },
      { value: 'secret', count: 1 },
    ],
    by_model: [
      { value: 'scripted', count: 3 },
      { value: 'other', count: 1 },
    ],
    by_user_id: [
      { value: 'ada', count: 2 },
      { value: 'grace', count: 1 },
    ],
  })
  expect(await count('by=label,status&model=other&status=idle')).toEqual({
    count: 1,
    by_status: { idle: 1 },
    by_label: [{ value: 'nightly', count: 1 }],
  })
  expect(await count('by=label&created_before=2000-01-01T00:00:00Z')).toEqual({ count: 0, by_label: [] })
  const makeKey = async (limits: object) =>
    (await http.call('POST', '/keys', { name: 'few', scopes: ['read'], ...limits })).body.key
  expect(await count('by=status,label,model,user_id', await makeKey({ user_id: 'grace' }))).toEqual({
    count: 1,
    by_status: { idle: 1 },
    by_label: [{ value: 'secret', count: 1 }],
    by_model: [{ value: 'scripted', count: 1 }],
    by_user_id: [{ value: 'grace', count: 1 }],
  })
  expect(await count('by=label', await makeKey({ conversations: [seen] }))).toEqual({
    count: 1,
    by_label: [
      { value: '__proto__', count: 1 },
      { value: 'nightly', count: 1 },
    ],
  })
  expectProblem(await http.call('GET', '/conversations/count?by=title'), 400, 'invalid_request')
})

test('counts have the most frequent hundred values only', async () => {
  await using http = await setHttp()
  for (let part = 0; part < 6; part++)
    await http.create({ labels: ['all', ...Array.from({ length: 19 }, (_, place) => `label-${part}-${place}`)] })
  const { body } = await http.call('GET', '/conversations/count?by=label')
  expect(body.by_label).toHaveLength(100)
  expect(body.by_label[0]).toEqual({ value: 'all', count: 6 })
})

test('a row says what the conversation is about, what its agent does now, and what waits', async () => {
  const slow = gate('Slow')
  await using http = await setHttp({
    tools: [slow.tool],
    script: ({ text }) =>
      text.includes('hello') ? { text: 'Hello.' } : { calls: [toolCall('Slow', { command: 'npm test' })] },
  })
  const rowOf = async (id: string) => {
    const { body } = await http.call('GET', '/conversations/summaries')
    return ConversationSummaries.parse(body).items.find((row) => row.id === id)
  }
  const { id } = await post(http, { initial_message: 'Say hello.', wait: true, title: 'Greeting', labels: ['a'] })
  const ended = {
    status: 'idle',
    title: 'Greeting',
    labels: ['a'],
    model: 'scripted',
    preview: 'Say hello.',
    last_words: 'Hello.',
  }
  expect(await rowOf(id)).toMatchObject(ended)
  expect(await rowOf(id)).not.toHaveProperty('current_call')

  const asked = (await post(http, { initial_message: 'Go slowly.', wait: true, permission_mode: 'default' })).id
  expect(await rowOf(asked)).toMatchObject({ status: 'waiting_for_confirmation', waiting: 1 })

  const running = (await post(http, { initial_message: 'Go slowly.' })).id
  const currentCall = { tool_use_id: expect.any(String), name: 'Slow', target: 'npm test' }
  await expect.poll(() => rowOf(running)).toMatchObject({ status: 'running', current_call: currentCall })
  slow.open()

  await http.bench.restart()
  const { items } = await http.bench.manager.summaries(ListConversations.parse({ order: 'asc' }))
  expect(items.slice(0, 2)).toMatchObject([ended, { id: asked, status: 'waiting_for_confirmation', waiting: 1 }])
})
