/** Models that are asked instead of an overloaded one, and conversations that share the limits of an endpoint. */
import { describe, expect, test } from 'vitest'
import { HttpLlm } from '../../../src/llm/http-llm.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'
import { Paces } from '../../../src/llm/pacing/paces.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, QUESTION } from '../asking.ts'

const BUSY: ScriptedTurn = { status: 529, error: { type: 'overloaded_error', message: 'Overloaded' } }
const busyFor =
  (...models: string[]) =>
  ({ body }: { body: Record<string, unknown> }): ScriptedTurn =>
    models.includes(String(body['model'])) ? BUSY : { text: `I am ${String(body['model'])}.` }

const config = {
  model: 'first',
  fallback_models: ['second', 'third'],
  input_cost_per_token: 1,
  output_cost_per_token: 1,
}

describe('an overloaded model', () => {
  test('is replaced by the next one at once, and the retry names it', async () => {
    const { answer, deltas, requests } = await askScript(busyFor('first', 'second'), config)
    expect(answer).toMatchObject({ text: 'I am third.', model: 'third', costUsd: undefined })
    expect(deltas.filter(({ kind }) => kind === 'retry')).toEqual([
      expect.objectContaining({ type: 'rate_limit', nextModel: 'second', waitMs: 0, retry: 1, maxRetries: 2 }),
      expect.objectContaining({ type: 'rate_limit', nextModel: 'third', waitMs: 0, retry: 2, maxRetries: 2 }),
    ])
    expect(requests.map(({ body }) => body['model'])).toEqual(['first', 'second', 'third'])
    expect(JSON.stringify(requests[1]?.body)).not.toContain('fallback')
  })

  test('is replaced in the same request, without messages that came since', async () => {
    const messages: ModelMessage[] = [...QUESTION.messages]
    await using model = await startScriptedModel((question) => {
      messages.push({ role: 'user', content: [{ type: 'text', text: 'One more thing.' }] })
      return busyFor('first')(question)
    })
    await ask(new HttpLlm({ config: { ...config, base_url: model.baseUrl } }), { ...QUESTION, messages })
    expect(model.requests.map(({ body }) => body['model'])).toEqual(['first', 'second'])
    expect(model.requests[1]!.body.messages).toEqual(model.requests[0]!.body.messages)
  })

  test('is not asked again for a while, also by other conversations with the same key', async () => {
    await using model = await startScriptedModel(busyFor('first'))
    const paces = new Paces()
    const llm = (more: object = {}) =>
      new HttpLlm({ config: { ...config, base_url: model.baseUrl, api_key: 'k', ...more }, paces, retryBaseMs: 1 })
    await ask(llm())
    await ask(llm())
    await ask(llm({ api_key: 'another' }))
    expect(model.requests.map(({ body }) => body['model'])).toEqual(['first', 'second', 'second', 'first', 'second'])
  })

  test('is waited for if all are overloaded, as often as num_retries says', async () => {
    const { error, requests } = await askScript(busyFor('first', 'second', 'third'), { ...config, num_retries: 1 })
    expect(error).toMatchObject({ type: 'rate_limit', retryable: true })
    expect(requests.map(({ body }) => body['model'])).toEqual(['first', 'second', 'third', 'first'])
  })
})

test.each([
  ['is not known', { status: 404, error: { message: 'model not found' } }],
  ['may not be used', { status: 403, error: { message: 'no access' } }],
  ['has no credit', { status: 402, error: { message: 'insufficient credits' } }],
])('a fallback model that %s is left out: the next one is asked, and then the model itself again', async (_, wrong) => {
  let isBusy = true
  const script = ({ body }: { body: Record<string, unknown> }): ScriptedTurn => {
    if (body['model'] === 'second') return wrong
    if (body['model'] === 'first' && !isBusy) return { text: 'I am first.' }
    isBusy = body['model'] !== 'third'
    return BUSY
  }
  const { answer, requests } = await askScript(script, { ...config, num_retries: 1 })
  expect(answer?.text).toBe('I am first.')
  expect(requests.map(({ body }) => body['model'])).toEqual(['first', 'second', 'third', 'first'])
})

test('another failure asks no other model', async () => {
  const { error, requests } = await askScript([{ status: 401, error: { message: 'no' } }], config)
  expect(error?.type).toBe('auth')
  expect(requests).toHaveLength(1)
})

test('a fallback is asked at the endpoint of the model, whatever its name says: the key goes nowhere else', async () => {
  await using model = await startScriptedModel(busyFor('first'))
  const fallback_models = ['openrouter/second']
  const llm = new HttpLlm({ config: { ...config, fallback_models, base_url: model.baseUrl }, retryBaseMs: 1 })
  expect((await ask(llm)).answer?.text).toBe('I am second.')
})

test('fifty conversations that are limited together do not come back together', async () => {
  let back = 0
  const answered = Promise.withResolvers<void>()
  await using model = await startScriptedModel(async ({ attempt }): Promise<ScriptedTurn> => {
    if (attempt === 0) return { status: 429, headers: { 'retry-after': '0' }, error: { message: 'Slow down' } }
    back += 1
    await answered.promise
    return { text: 'done' }
  })
  const paces = new Paces()
  const asking = Promise.all(
    Array.from({ length: 50 }, async (_, at) => {
      const llm = new HttpLlm({
        config: { model: 'm', base_url: model.baseUrl, num_retries: 1 },
        paces,
        retryBaseMs: 1,
      })
      return await ask(llm, { ...QUESTION, system: `Conversation ${at}.` })
    }),
  )
  await expect.poll(() => back).toBeGreaterThan(2)
  // Those who come back at the same time have done so when others, who ask later, have been answered.
  for (let times = 0; times < 5; times++) await askScript([{ text: 'done' }])
  expect(back).toBeLessThan(25)
  answered.resolve()
  expect((await asking).every(({ answer }) => answer?.text === 'done')).toBe(true)
  expect(model.requests).toHaveLength(100)
})
