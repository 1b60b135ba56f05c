/** Endpoints of the Messages API that lie, or send too much: the answer is bounded, and never half a call. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { inOrder } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith } from '../asking.ts'
import { anyText } from '../../support/any-text.ts'
import { effort } from '../../support/patience.ts'

const config = { provider: 'anthropic' } as const
const MIB = 1024 * 1024
const event = (type: string, more: object = {}, name = type) =>
  `event: ${name}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const begin = event('message_start', { message: { model: 'm', usage: { input_tokens: 5, output_tokens: 1 } } })
const block = (index: number, content_block: object) => event('content_block_start', { index, content_block })
const piece = (index: number, delta: object) => event('content_block_delta', { index, delta })
const end = (reason = 'end_turn', usage: object = { output_tokens: 3 }) =>
  event('message_delta', { delta: { stop_reason: reason }, usage }) + event('message_stop')
const text = (index: number, words: string) =>
  block(index, { type: 'text', text: '' }) + piece(index, { type: 'text_delta', text: words })
const call = (index: number, id: string, input: string) =>
  block(index, { type: 'tool_use', id, name: 'Bash', input: {} }) +
  piece(index, { type: 'input_json_delta', partial_json: input })

const answerTo = async (...raw: string[]) => (await askScript([{ raw }], config)).answer

test.each<readonly [what: string, turn: ScriptedTurn, why: RegExp]>([
  ['text', { raw: [begin, ...Array.from({ length: 9 }, (_, at) => text(at, 'a'.repeat(MIB)))] }, /longer than/],
  [
    'signatures',
    {
      raw: [
        begin,
        ...Array.from({ length: 9 }, (_, at) => block(at, { type: 'thinking', signature: 's'.repeat(MIB) })),
      ],
    },
    /longer than/,
  ],
  ['blocks', { raw: [begin, ...Array.from({ length: 3000 }, (_, at) => text(at, 'a'))] }, /more than 2000 blocks/],
  ['calls', { raw: [begin, ...Array.from({ length: 200 }, (_, at) => call(at, `c${at}`, '{}'))] }, /more than 128/],
  ['depth', { raw: [begin, `data: ${'['.repeat(5000)}${']'.repeat(5000)}\n\n`] }, /nested more than 100 levels/],
  ['line', { raw: ['data: ', ...Array.from({ length: 14 }, () => 'a'.repeat(MIB))] }, /event is longer than/],
])('too much of it, %s: the request ends with a reason', async (_what, turn, why) => {
  const { error, answer } = await askScript([turn], config)
  expect(answer).toBeUndefined()
  expect(error).toMatchObject({ type: 'network', retryable: false })
  expect(error?.message).toMatch(why)
})

test('a stream that never ends is given up at the time limit, also one of pings and empty blocks only', async () => {
  const endless = (function* (): Generator<string> {
    yield begin
    for (let at = 0; ; at++) yield event('ping') + block(at, { type: 'thinking', thinking: '' })
  })()
  const { error } = await askScript([{ raw: endless as unknown as string[] }], { ...config, timeout: 0.5 })
  expect(error?.message).toContain('did not finish within 0.5 s')
})

test('a stream that stays open after its end does not hold up the answer', async () => {
  const { answer } = await askScript([{ raw: [begin, text(0, 'Done.'), end()], hang: true }], {
    ...config,
    timeout: 60,
  })
  expect(answer?.text).toBe('Done.')
})

test('a stream that begins again loses all of its first answer: the request is repeated', async () => {
  const broken = { raw: [begin, text(0, 'I '), call(1, 'c1', '{"command":'), begin, call(0, 'c2', '{}'), end()] }
  const { answer, deltas } = await askScript(
    inOrder([broken, { raw: [begin, call(0, 'c3', '{}'), end('tool_use')] }]),
    { ...config, num_retries: 1 },
  )
  expect(answer?.toolCalls.map(({ id }) => id)).toEqual(['c3'])
  expect(answer?.text).toBe('')
  expect(deltas.filter(({ kind }) => kind === 'retry')).toHaveLength(1)
  const twice = await answerTo(begin, begin, text(0, 'Hi'), end())
  expect(twice?.text, 'before anything was said').toBe('Hi')
})

describe('what makes no sense', () => {
  test('a signature without thinking is ignored', async () => {
    const answer = await answerTo(
      begin,
      text(0, 'Hi'),
      piece(0, { type: 'signature_delta', signature: 'x' }),
      piece(7, { type: 'signature_delta', signature: 'y' }),
      end(),
    )
    expect(answer).toMatchObject({ text: 'Hi' })
    expect(answer?.parts).toBeUndefined()
  })

  test('calls that share an id or an index are two calls with different ids', async () => {
    const answer = await answerTo(
      begin,
      call(0, 'same', '{"a":1}'),
      call(0, 'same', '{"a":2}'),
      call(1, 'same', '{}'),
      end(),
    )
    expect(answer?.toolCalls.map((each) => each.arguments)).toEqual(['{"a":1}', '{"a":2}', '{}'])
    expect(new Set(answer?.toolCalls.map(({ id }) => id)).size).toBe(3)
  })

  test('blocks and events of unknown types add nothing', async () => {
    const answer = await answerTo(
      begin,
      block(0, { type: 'hologram', text: 'x' }),
      piece(0, { type: 'input_json_delta', partial_json: '{"a":1}' }),
      piece(0, { type: 'text_delta', text: 'x' }),
      event('content_block_party', { index: 0 }),
      text(1, 'Hi'),
      end(),
    )
    expect(answer).toMatchObject({ text: 'Hi', toolCalls: [] })
  })

  test('the name of an event does not decide what it is', async () => {
    const answer = await answerTo(
      begin,
      event('content_block_start', { index: 0, content_block: { type: 'text', text: 'Hi' } }, 'message_stop'),
      end(),
    )
    expect(answer?.text).toBe('Hi')
  })

  test('a piece of an event named `error` is a failure', async () => {
    const { error } = await askScript(
      [{ raw: [begin, text(0, 'Hi').replaceAll('content_block_delta\n', 'error\n'), end()] }],
      config,
    )
    expect(error).toMatchObject({ type: 'network', retryable: true })
  })

  test('usage that no model reaches counts nothing', async () => {
    const answer = await answerTo(
      begin,
      text(0, 'Hi'),
      end('end_turn', {
        output_tokens: 1e308,
        cache_read_input_tokens: -4,
        cache_creation_input_tokens: '7',
        input_tokens: 1.5,
      }),
    )
    expect(answer?.usage).toEqual({ input_tokens: 1, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 })
  })
})

const index = fc.constantFrom(0, 1, 2, -1, 1e308, '0', null)
const odd = fc.oneof(
  fc.record(
    {
      type: fc.constant('content_block_start'),
      index,
      content_block: fc.record(
        {
          type: fc.constantFrom('text', 'thinking', 'redacted_thinking', 'tool_use', 'x', null),
          text: fc.jsonValue(),
          thinking: fc.jsonValue(),
          signature: fc.jsonValue(),
          data: fc.jsonValue(),
          id: fc.constantFrom('a', 'b', 3),
          name: fc.jsonValue(),
          input: fc.jsonValue(),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['type'] },
  ),
  fc.record(
    {
      type: fc.constant('content_block_delta'),
      index,
      delta: fc.record(
        {
          type: fc.constantFrom('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta', null),
          text: anyText(),
          thinking: anyText(),
          signature: fc.jsonValue(),
          partial_json: fc.constantFrom('{', '}', '{"a":1}', null),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['type'] },
  ),
  fc.record(
    {
      type: fc.constantFrom('content_block_stop', 'message_delta', 'message', 'message_start', 'ping'),
      index,
      delta: fc.jsonValue(),
      content: fc.jsonValue(),
      usage: fc.jsonValue(),
      message: fc.jsonValue(),
    },
    { requiredKeys: ['type'] },
  ),
  fc.jsonValue(),
)

test('whatever a stream holds, it ends in an answer with unique ids or in an LlmError', async () => {
  let raw: string[] = []
  await using model = await startScriptedModel(() => ({ raw }))
  const llm = chatWith(model, config)
  await fc.assert(
    fc.asyncProperty(fc.array(odd, { maxLength: 12 }), async (events) => {
      raw = [begin, ...events.map((each) => `data: ${JSON.stringify(each)}\n\n`), end('tool_use')]
      const { answer, error } = await ask(llm)
      expect(Boolean(answer) || Boolean(error)).toBe(true)
      const ids = answer?.toolCalls.map(({ id }) => id) ?? []
      expect(new Set(ids).size).toBe(ids.length)
      for (const part of answer?.parts ?? []) expect(part.text).toBe(part.text.toWellFormed())
    }),
    { numRuns: effort(20, 3000) },
  )
})
