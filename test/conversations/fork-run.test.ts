/** A fork that is asked of another model than its original, and that runs at once. */
import { expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ForkConversation } from '../../src/contract/conversation.ts'
import { startForkRun } from '../../src/conversations/fork.ts'
import { endOf, eventsOf, MODEL_KEY, only, say, setBench } from './fixtures.ts'

const asked = (fields: object) => ForkConversation.parse(fields)

test('a fork with another model asks this one, and its original stays as it is', async () => {
  await using bench = await setBench()
  const original = await bench.converse()
  await say(original)
  const [message] = only(await eventsOf(original), 'UserMessage')
  const fields = { at_seq: message!.seq, llm_config: { model: 'openai/another' } }
  const view = await bench.manager.fork(original.id, asked(fields))
  expect([view.llm_config.model, original.state.settings.llm_config.model]).toEqual(['openai/another', 'scripted'])
  const fork = await bench.manager.open(view.id)
  const run = await startForkRun(fork)
  expect(await startForkRun(fork)).toBe(run)
  const result = await endOf(fork, run)
  expect(result).toMatchObject({ run_id: run, final_text: 'Hello.' })
  expect(await startForkRun(fork)).toBe(run)
  expect(bench.model.requests.at(-1)?.body).toMatchObject({ model: 'another' })
  // The endpoint is the same one: so is its key.
  expect(bench.model.requests.at(-1)?.headers.authorization).toBe(`Bearer ${MODEL_KEY}`)
  expect(only(await eventsOf(original), 'Result')).toHaveLength(1)
})

test('a fork that leads to another endpoint takes no stored key there, also after a restart', async () => {
  await using bench = await setBench()
  await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
  const original = await bench.converse()
  await say(original)
  const view = await bench.manager.fork(original.id, asked({ llm_config: { base_url: other.baseUrl } }))
  expect(view.warnings?.join()).toContain('api_key')
  await bench.restart()
  await say(await bench.manager.open(view.id))
  expect(other.requests).toHaveLength(1)
  expect(JSON.stringify(other.requests)).not.toContain(MODEL_KEY)
  // The original keeps its own.
  await say(await bench.manager.open(original.id))
  expect(bench.model.requests.at(-1)?.headers.authorization).toBe(`Bearer ${MODEL_KEY}`)
})

test('a fork that gets its own key sends this one, and has it neither in its answer nor in its log', async () => {
  await using bench = await setBench()
  await using other = await startScriptedModel(() => ({ text: 'Hello.' }))
  const original = await bench.converse()
  const llm_config = { base_url: other.baseUrl, api_key: 'sk-of-the-fork-4711' }
  const view = await bench.manager.fork(original.id, asked({ llm_config }))
  const fork = await bench.manager.open(view.id)
  await say(fork)
  expect(other.requests[0]?.headers.authorization).toBe('Bearer sk-of-the-fork-4711')
  expect(JSON.stringify([view, await eventsOf(fork)])).not.toContain('sk-of-the-fork-4711')
})

test('settings that a change of the configuration refuses make no fork', async () => {
  await using bench = await setBench()
  const original = await bench.converse({
    max_budget_usd: 1,
    allow_unpriced: false,
    llm_config: {
      model: 'scripted',
      base_url: bench.model.baseUrl,
      api_key: MODEL_KEY,
      ...PRICED,
    },
  })
  const before = bench.manager.count({}).count
  for (const llm_config of [{ temperature: 'hot' }, { model: 'openai/of-unknown-price' }])
    await expect(bench.manager.fork(original.id, asked({ llm_config }))).rejects.toMatchObject({
      code: expect.stringMatching(/^(invalid_request|unknown_cost)$/),
    })
  expect(bench.manager.count({}).count).toBe(before)
})

const PRICED = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }

test('a fork stores its new key in no other field', async () => {
  await using bench = await setBench()
  const original = await bench.converse()
  const key = 'sk-of-the-fork-4712'
  const view = await bench.manager.fork(original.id, asked({ title: `Uses ${key}`, llm_config: { api_key: key } }))
  expect(view.title).toBe('Uses <secret:llm_config.api_key>')
  const fork = await bench.manager.open(view.id)
  expect(JSON.stringify(await eventsOf(fork))).not.toContain(key)
})

test('an Idempotency-Key that is the new key of a fork is refused', async () => {
  await using bench = await setBench()
  const original = await bench.converse()
  const key = 'sk-of-the-fork-4713'
  const idempotency = { key, bodyHash: 'hash' }
  const forking = bench.manager.fork(original.id, asked({ llm_config: { api_key: key } }), idempotency)
  await expect(forking).rejects.toMatchObject({ code: 'invalid_request' })
})
