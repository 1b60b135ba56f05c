/** The credentials of a conversation go to the origin that they were given for, and to no other. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isOfServer, serverKeyFor } from '../../../src/conversations/config/llm-origin.ts'
import { CreateConversation, ForkConversation, UpdateConfig } from '../../../src/contract/conversation.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { eventsOf, MODEL_KEY, only, say, setBench } from '../fixtures.ts'
import type { Bench } from '../fixtures.ts'

const HEADER = 'header-secret-4711'

/** A conversation with a key and a header for the bench's own model. */
async function converse(bench: Bench) {
  const llm_config = {
    model: 'scripted',
    base_url: bench.model.baseUrl,
    api_key: MODEL_KEY,
    extra_headers: { 'X-Api-Key': HEADER },
    num_retries: 0,
  }
  return await bench.manager.create(CreateConversation.parse({ llm_config }))
}

const put = (bench: Bench, id: string, llm_config: object) => bench.configure(id, UpdateConfig.parse({ llm_config }))

const run = async (bench: Bench, id: string) => await say(await bench.manager.open(id))

/** Nobody there has ever seen any of it. */
function expectNothingAt(model: ScriptedModel): void {
  expect(model.requests.length).toBeGreaterThan(0)
  expect(JSON.stringify(model.requests)).not.toMatch(new RegExp(`${MODEL_KEY}|${HEADER}`))
}

describe('an update that leads to another origin', () => {
  test('drops the stored key and headers, says so, and sends them nowhere, also after a restart', async () => {
    await using bench = await setBench()
    await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
    const { id } = await converse(bench)
    const change = await put(bench, id, { base_url: other.baseUrl })
    expect(change.dropped).toEqual(['api_key', 'extra_headers'])
    expect(change.llm_config).toEqual({ model: 'scripted', base_url: other.baseUrl, num_retries: 0 })
    expect(await run(bench, id)).toMatchObject({ stop_reason: 'completed' })
    await bench.restart()
    expect(await run(bench, id)).toMatchObject({ stop_reason: 'completed' })
    expect(other.requests).toHaveLength(2)
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined])
    expectNothingAt(other)
    const [update] = only(await eventsOf(await bench.manager.open(id)), 'ConfigUpdate')
    expect(update?.changes).toEqual({
      llm_config: { base_url: other.baseUrl },
      dropped: ['api_key', 'extra_headers'],
    })
  })

  test('accepts its new credentials, and no masked ones', async () => {
    await using bench = await setBench()
    await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
    const { id, llm_config: masked } = await converse(bench)
    const sent = { ...masked, base_url: other.baseUrl, api_key: 'a-key-for-the-other' }
    const change = await put(bench, id, { ...sent, extra_headers: { ...masked.extra_headers, 'X-New': 'new-1' } })
    expect(change.dropped).toEqual(['extra_headers'])
    expect(change.llm_config.extra_headers).toEqual({ 'X-New': '**********' })
    await run(bench, id)
    expect(other.requests.at(-1)?.headers).toMatchObject({
      authorization: 'Bearer a-key-for-the-other',
      'x-new': 'new-1',
    })
    expectNothingAt(other)
    const again = await put(bench, id, { base_url: bench.model.baseUrl, api_key: '**********' })
    expect(again.dropped).toEqual(['api_key', 'extra_headers'])
    await run(bench, id)
    expect(bench.model.requests.at(-1)?.headers, 'nor does the former key come back').not.toHaveProperty(
      'authorization',
    )
  })

  test.each([
    ['another host', { base_url: 'http://localhost:9/v1' }],
    ['another port', { base_url: 'http://127.0.0.1:9/v1' }],
    ['another scheme', { base_url: 'https://127.0.0.1/v1' }],
  ])('is one to %s', async (_, update) => {
    await using bench = await setBench()
    const { id } = await converse(bench)
    expect((await put(bench, id, update)).dropped).toEqual(['api_key', 'extra_headers'])
  })

  test('can also come from the provider in the model’s name', async () => {
    await using bench = await setBench()
    const { id } = await bench.manager.create(
      CreateConversation.parse({ llm_config: { model: 'gpt-5', api_key: MODEL_KEY } }),
    )
    expect((await put(bench, id, { model: 'gpt-5-mini' })).dropped).toBeUndefined()
    expect((await put(bench, id, { model: 'openrouter/x/y' })).dropped).toEqual(['api_key'])
  })

  test('does not include another path, nor an unrelated change', async () => {
    await using bench = await setBench()
    const { id } = await converse(bench)
    const change = await put(bench, id, { base_url: bench.model.baseUrl.replace('/v1', '/other/v1'), temperature: 1 })
    expect(change).not.toHaveProperty('dropped')
    await run(bench, id)
    expect(bench.model.requests.at(-1)).toMatchObject({
      path: expect.stringContaining('/other/'),
      headers: { authorization: `Bearer ${MODEL_KEY}`, 'x-api-key': HEADER },
    })
  })
})

test('a key for a new origin is not sent to the former one, even after a crash in between', async () => {
  await using bench = await setBench()
  await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
  const { id } = await converse(bench)
  await put(bench, id, { base_url: other.baseUrl, api_key: 'a-key-for-the-other' })
  const log = join(bench.sessionOf(id), 'events.jsonl')
  await bench.restart({
    kill: true,
    // The credentials are stored, and the event that tells of the change is not.
    between: async () => {
      const lines = (await readFile(log, 'utf8')).trimEnd().split('\n')
      expect(lines.at(-1)).toContain('"ConfigUpdate"')
      await writeFile(log, `${lines.slice(0, -1).join('\n')}\n`)
    },
  })
  expect(await run(bench, id)).toMatchObject({ stop_reason: 'error' })
  expect(JSON.stringify(bench.model.requests)).not.toContain('a-key-for-the-other')
  await put(bench, id, { api_key: MODEL_KEY, extra_headers: {} })
  expect(await run(bench, id)).toMatchObject({ stop_reason: 'completed' })
})

test('a fork gets the current credentials of its original, and loses them under the same conditions', async () => {
  await using bench = await setBench()
  await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
  const { id } = await converse(bench)
  await run(bench, id)
  const before = await bench.manager.fork(id, ForkConversation.parse({ workdir: 'share' }), undefined)
  expect((await put(bench, before.id, { base_url: other.baseUrl })).dropped).toEqual(['api_key', 'extra_headers'])
  await put(bench, id, { base_url: other.baseUrl })
  const after = await bench.manager.fork(id, ForkConversation.parse({ workdir: 'share', at_seq: 2 }), undefined)
  for (const fork of [before, after]) await run(bench, fork.id)
  expectNothingAt(other)
})

test('the server’s own key goes to the server’s own endpoint, whatever a client configures', async () => {
  await using own = await startScriptedModel(() => ({ text: 'Hello.' }))
  const llmDefaults = { model: 'scripted', api_key: 'the-servers-own-key', base_url: own.baseUrl }
  await using bench = await setBench({ deps: { llmDefaults } })
  const create = (llm_config?: object) => bench.manager.create(CreateConversation.parse({ llm_config }))
  const { id: plain } = await create()
  const { id: elsewhere } = await create({ base_url: bench.model.baseUrl })
  const { id: moved } = await create()
  await put(bench, moved, { base_url: bench.model.baseUrl })
  const fork = await bench.manager.fork(moved, ForkConversation.parse({ workdir: 'share' }), undefined)
  for (const id of [plain, elsewhere, moved, fork.id]) await run(bench, id)
  expect(own.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer the-servers-own-key'])
  expect(bench.model.requests).toHaveLength(3)
  expect(JSON.stringify(bench.model.requests)).not.toContain('the-servers-own-key')
})

test('the server’s own API goes with its own endpoint only', async () => {
  await using own = await startScriptedModel(() => ({ text: 'Hello.' }))
  const llmDefaults = { model: 'scripted', base_url: own.baseUrl, provider: 'anthropic' } as const
  await using bench = await setBench({ deps: { llmDefaults } })
  const create = (llm_config?: object) => bench.manager.create(CreateConversation.parse({ llm_config }))
  const { id: plain } = await create()
  const { id: chosen } = await create({ provider: 'openai_responses' })
  const { id: elsewhere } = await create({ base_url: bench.model.baseUrl })
  for (const id of [plain, chosen, elsewhere]) await run(bench, id)
  expect(own.requests.map(({ path }) => path)).toEqual(['/v1/messages', '/v1/responses'])
  expect(bench.model.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
})

test('the server’s own endpoint is that of its model, if it has no URL', () => {
  const own = { model: 'claude-sonnet-5', api_key: 'the-servers-own-key' }
  expect(serverKeyFor({ model: 'claude-opus-5' }, own)).toEqual({ key: 'the-servers-own-key' })
  for (const model of ['gpt-5', 'openrouter/x/y']) expect(serverKeyFor({ model }, own)).toBeUndefined()
  expect(serverKeyFor({ model: 'gpt-5' }, { api_key: 'k' })).toEqual({ key: 'k' })
})

describe('a model is one of the server', () => {
  test('if its name leads to the endpoint of the server, and not to that of another vendor', () => {
    const defaults = { model: 'gpt-5', api_key: 'the-key-of-the-server' }
    expect(isOfServer({ model: 'gpt-5-mini' }, defaults)).toBe(true)
    expect(isOfServer({ model: 'openrouter/gpt-5' }, defaults)).toBe(false)
    expect(isOfServer({ model: 'claude-opus-5' }, defaults)).toBe(false)
    expect(isOfServer({ model: 'nobody-knows-it' }, defaults)).toBe(false)
  })

  test('of all models of a vendor whose key is in the environment only if it is the model of the server', () => {
    const defaults = { model: 'gpt-5', api_key: 'the-key-of-a-vendor', isVendorKey: true }
    expect(isOfServer({ model: 'gpt-5' }, defaults)).toBe(true)
    expect(isOfServer({ model: 'gpt-5-mini' }, defaults)).toBe(false)
  })
})
