/** Endpoints of the Responses API that lie, or send too much: the answer is bounded, and never half a call. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { inOrder } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith } from '../asking.ts'
import { anyText } from '../../support/any-text.ts'
import { effort } from '../../support/patience.ts'

const config = { provider: 'openai_responses' } as const
const MIB = 1024 * 1024
const event = (type: string, more: object = {}, name = type) =>
  `event: ${name}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const begin = (output_index: number, item: object) => event('response.output_item.added', { output_index, item })
const finish = (output_index: number, item: object) => event('response.output_item.done', { output_index, item })
const text = (output_index: number, delta: string) =>
  begin(output_index, { type: 'message' }) + event('response.output_text.delta', { output_index, delta })
const call = (output_index: number, call_id: string, input: string) =>
  begin(output_index, { type: 'function_call', call_id, name: 'Bash' }) +
  event('response.function_call_arguments.delta', { output_index, delta: input })
const end = (more: object = {}) => event('response.completed', { response: { status: 'completed', ...more } })

const answerTo = async (...raw: string[]) => (await askScript([{ raw }], config)).answer

test.each<readonly [what: string, turn: ScriptedTurn, why: RegExp]>([
  ['text', { raw: Array.from({ length: 9 }, (_, at) => text(at, 'a'.repeat(MIB))) }, /longer than/],
  [
    'encrypted reasoning',
    {
      raw: Array.from({ length: 9 }, (_, at) => finish(at, { type: 'reasoning', encrypted_content: 'e'.repeat(MIB) })),
    },
    /longer than/,
  ],
  ['blocks', { raw: Array.from({ length: 3000 }, (_, at) => text(at, 'a')) }, /more than 2000 blocks/],
  ['calls', { raw: Array.from({ length: 200 }, (_, at) => call(at, `c${at}`, '{}')) }, /more than 128/],
  ['depth', { raw: [`data: ${'['.repeat(5000)}${']'.repeat(5000)}\n\n`] }, /nested more than 100 levels/],
])('too much of it, %s: the request ends with a reason', async (_what, turn, why) => {
  const { error, answer } = await askScript([turn], config)
  expect(answer).toBeUndefined()
  expect(error).toMatchObject({ type: 'network', retryable: false })
  expect(error?.message).toMatch(why)
})

test('a stream of progress that never ends is given up at the time limit', async () => {
  const endless = (function* (): Generator<string> {
    for (let at = 0; ; at++) yield begin(at, { type: 'reasoning' }) + event('response.in_progress', { response: {} })
  })()
  const { error } = await askScript([{ raw: endless as unknown as string[] }], { ...config, timeout: 0.5 })
  expect(error?.message).toContain('did not finish within 0.5 s')
})

test('a stream that stays open after its end does not hold up the answer', async () => {
  const { answer } = await askScript([{ raw: [text(0, 'Done.'), end()], hang: true }], { ...config, timeout: 60 })
  expect(answer?.text).toBe('Done.')
})

test('a stream that begins again loses all of its first answer: the request is repeated', async () => {
  const created = event('response.created', { response: {} })
  const broken = { raw: [created, text(0, 'I '), call(1, 'c1', '{"command":'), created, call(0, 'c2', '{}'), end()] }
  const { answer, deltas } = await askScript(inOrder([broken, { raw: [created, call(0, 'c3', '{}'), end()] }]), {
    ...config,
    num_retries: 1,
  })
  expect(answer?.toolCalls.map(({ id }) => id)).toEqual(['c3'])
  expect(answer?.text).toBe('')
  expect(deltas.filter(({ kind }) => kind === 'retry')).toHaveLength(1)
})

describe('what makes no sense', () => {
  test('calls that share an id or an index are two calls with different ids', async () => {
    const answer = await answerTo(
      call(0, 'same', '{"a":1}'),
      call(0, 'same', '{"a":2}'),
      call(1, 'same', '{}'),
      finish(1, { type: 'function_call', call_id: 'other', arguments: '{"a":3}' }),
      end(),
    )
    expect(answer?.toolCalls.map((each) => each.arguments)).toEqual(['{"a":1}', '{"a":2}', '{}'])
    expect(new Set(answer?.toolCalls.map(({ id }) => id)).size).toBe(3)
  })

  test('pieces without an item, or of another kind, add nothing', async () => {
    const answer = await answerTo(
      event('response.function_call_arguments.delta', { output_index: 4, delta: '{"a":1}' }),
      begin(0, { type: 'hologram' }),
      event('response.output_text.delta', { output_index: 0, delta: 'x' }),
      text(1, 'Hi'),
      event('response.function_call_arguments.delta', { output_index: 1, delta: '{"a":1}' }),
      end(),
    )
    expect(answer).toMatchObject({ text: 'Hi', toolCalls: [] })
  })

  test('the name of an event does not decide what it is, but `error` is a failure', async () => {
    const lying = event('response.output_text.delta', { output_index: 0, delta: 'Hi' }, 'response.completed')
    expect((await answerTo(begin(0, { type: 'message' }), lying, end()))?.text).toBe('Hi')
    const { error } = await askScript(
      [{ raw: [text(0, 'Hi').replaceAll('delta\n', 'x\n'), event('x', {}, 'error')] }],
      config,
    )
    expect(error).toMatchObject({ type: 'network', retryable: true })
  })

  test('usage that no model reaches counts nothing', async () => {
    const answer = await answerTo(
      text(0, 'Hi'),
      end({ usage: { input_tokens: -1, output_tokens: 1e308, input_tokens_details: { cached_tokens: 9 } } }),
    )
    expect(answer?.usage).toEqual({ input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 })
  })
})

const index = fc.constantFrom(0, 1, 2, -1, 1e308, '0', null)
const item = fc.record(
  {
    type: fc.constantFrom('message', 'reasoning', 'function_call', 'x', null),
    id: fc.jsonValue(),
    call_id: fc.constantFrom('a', 'b', 3),
    name: fc.jsonValue(),
    arguments: fc.constantFrom('{', '{"a":1}', null),
    content: fc.jsonValue(),
    summary: fc.jsonValue(),
    phase: fc.jsonValue(),
    encrypted_content: fc.jsonValue(),
  },
  { requiredKeys: [] },
)
const odd = fc.oneof(
  fc.record({
    type: fc.constantFrom('response.output_item.added', 'response.output_item.done'),
    output_index: index,
    item,
  }),
  fc.record({
    type: fc.constantFrom(
      'response.output_text.delta',
      'response.reasoning_summary_text.delta',
      'response.reasoning_text.delta',
      'response.function_call_arguments.delta',
    ),
    output_index: index,
    summary_index: index,
    delta: fc.oneof(anyText(), fc.jsonValue()),
  }),
  fc.record({ type: fc.constantFrom('response.created', 'response.x', 'x'), response: fc.jsonValue() }),
  fc.jsonValue(),
)

test('whatever a stream holds, it ends in an answer with unique ids or in an LlmError', async () => {
  let raw: string[] = []
  await using model = await startScriptedModel(() => ({ raw }))
  const llm = chatWith(model, config)
  await fc.assert(
    fc.asyncProperty(fc.array(odd, { maxLength: 12 }), fc.array(item, { maxLength: 3 }), async (events, output) => {
      raw = [...events.map((each) => `data: ${JSON.stringify(each)}\n\n`), end({ output })]
      const { answer, error } = await ask(llm)
      expect(Boolean(answer) || Boolean(error)).toBe(true)
      const ids = answer?.toolCalls.map(({ id }) => id) ?? []
      expect(new Set(ids).size).toBe(ids.length)
      for (const part of answer?.parts ?? []) expect(part.text).toBe(part.text.toWellFormed())
    }),
    { numRuns: effort(20, 3000) },
  )
})
