import { describe, expect, test } from 'vitest'
import { keepBusy, takeTime } from '../support/take-time.ts'
import { askScript, delta, event, rawTurn, shownText, stop, toolCalls } from './asking.ts'

const call = (fields: object, fn: object = {}) => delta({ tool_calls: [{ ...fields, function: fn }] })

async function callsOf(...chunks: object[]) {
  const { answer, error } = await askScript([rawTurn(...chunks)])
  if (error) throw error
  return answer?.toolCalls ?? []
}

describe('text', () => {
  test('comes as deltas that add up to the answer', async () => {
    const { deltas, answer } = await askScript([{ text: 'It is  a\nsmall tree.', chunk_delay_ms: 1 }])
    expect(deltas.length).toBeGreaterThan(2)
    expect(shownText(deltas)).toBe('It is  a\nsmall tree.')
    expect(answer).toMatchObject({ text: 'It is  a\nsmall tree.', stopReason: 'stop', toolCalls: [] })
  })

  test('never ends a delta inside a character', async () => {
    const turn = rawTurn(delta({ content: 'a\ud83d' }), delta({ content: '\ude00b' }), stop)
    const { deltas, answer } = await askScript([{ ...turn, chunk_delay_ms: 5 }])
    expect(deltas.map((delta) => 'text' in delta && delta.text)).toEqual(['a', '😀b'])
    expect(answer?.text).toBe('a😀b')
  })

  test('survives a cut inside a UTF-8 character', async () => {
    const bytes = Buffer.from(event(delta({ content: 'né😀' }, 'stop')))
    const at = bytes.indexOf(0xf0) + 2
    const { answer } = await askScript([{ raw: [bytes.subarray(0, at), bytes.subarray(at)], chunk_delay_ms: 5 }])
    expect(answer?.text).toBe('né😀')
  })

  test('may be a list of parts, reasoning among them', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }
    const { answer } = await askScript([rawTurn(delta({ content: [thinking, { type: 'text', text: 'yes' }] }), stop)])
    expect(answer).toMatchObject({ text: 'yes', reasoning: 'hm' })
  })

  test('may be a refusal', async () => {
    const { answer } = await askScript([rawTurn(delta({ content: null, refusal: 'I cannot.' }), stop)])
    expect(answer?.text).toBe('I cannot.')
  })
})

describe('reasoning', () => {
  test.each(['reasoning_content', 'reasoning'])('is read from %s', async (field) => {
    const { deltas, answer } = await askScript([
      rawTurn(delta({ [field]: 'let me see' }), delta({ content: 'a' }), stop),
    ])
    expect(shownText(deltas, 'reasoning')).toBe('let me see')
    expect(answer).toMatchObject({ reasoning: 'let me see', text: 'a' })
  })

  test('is read once if a vendor sends it under both names', async () => {
    const { answer } = await askScript([rawTurn(delta({ reasoning: 'x', reasoning_content: 'x' }), stop)])
    expect(answer?.reasoning).toBe('x')
  })
})

describe('tool calls', () => {
  test('are put together from fragments cut inside an escape', async () => {
    const calls = await callsOf(
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '' }),
      call({ index: 0 }, { arguments: '{"command":"echo \\u00' }),
      call({ index: 0 }, { arguments: 'e9\\' }),
      call({ index: 0 }, { arguments: 'n"}' }),
      toolCalls,
    )
    expect(calls).toEqual([{ id: 'a', name: 'Bash', arguments: '{"command":"echo \\u00e9\\n"}' }])
  })

  test('may be interleaved by index, and their deltas identify their call', async () => {
    const { deltas, answer } = await askScript([
      rawTurn(
        call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x":' }),
        call({ index: 1, id: 'b' }, { name: 'Glob', arguments: '{"y":' }),
        call({ index: 0 }, { arguments: '1}' }),
        call({ index: 1 }, { arguments: '2}' }),
        toolCalls,
      ),
    ])
    expect(answer?.toolCalls).toEqual([
      { id: 'a', name: 'Bash', arguments: '{"x":1}' },
      { id: 'b', name: 'Glob', arguments: '{"y":2}' },
    ])
    const inputs = deltas.filter((delta) => delta.kind === 'tool_input')
    expect(
      inputs
        .filter(({ index }) => index === 1)
        .map(({ text }) => text)
        .join(''),
    ).toBe('{"y":2}')
  })

  test('have one id from their first delta on, also where the vendor gives none, or one that was given before', async () => {
    const { deltas, answer } = await askScript([
      rawTurn(
        call({ index: 0 }, { name: 'Bash', arguments: '{"x":' }),
        call({ index: 0, id: 'late' }, { arguments: '1}' }),
        call({ index: 1, id: 'same' }, { name: 'Glob', arguments: '{}' }),
        call({ index: 2, id: 'same' }, { name: 'Grep', arguments: '{}' }),
        toolCalls,
      ),
    ])
    const ids = answer!.toolCalls.map(({ id }) => id)
    expect(new Set(ids).size).toBe(3)
    const shown = deltas
      .filter((delta) => delta.kind === 'tool_input')
      .map(({ index, id, name }) => ({ index, id, name }))
    expect(shown).toEqual([
      { index: 0, id: ids[0], name: 'Bash' },
      { index: 0, id: ids[0], name: 'Bash' },
      { index: 1, id: 'same', name: 'Glob' },
      { index: 2, id: ids[2], name: 'Grep' },
    ])
  })

  test('without an index belong to the last call, until one with another id begins', async () => {
    const calls = await callsOf(
      call({ id: 'a' }, { name: 'Bash', arguments: '{"x":' }),
      call({}, { arguments: '1}' }),
      call({ id: 'b' }, { name: 'Bash', arguments: '{}' }),
      toolCalls,
    )
    expect(calls.map((each) => [each.id, each.arguments])).toEqual([
      ['a', '{"x":1}'],
      ['b', '{}'],
    ])
  })

  test('that all have index 0 are distinguished by their ids', async () => {
    const calls = await callsOf(
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x":1}' }),
      call({ index: 0, id: 'b' }, { name: 'Bash', arguments: '{"x":2}' }),
      toolCalls,
    )
    expect(calls.map((each) => each.arguments)).toEqual(['{"x":1}', '{"x":2}'])
  })

  test('without index and id are distinguished by their complete arguments', async () => {
    const calls = await callsOf(
      call({}, { name: 'Bash', arguments: '{"x":1}' }),
      call({}, { name: 'Bash', arguments: '{"x":2}' }),
      toolCalls,
    )
    expect(calls.map((each) => each.arguments)).toEqual(['{"x":1}', '{"x":2}'])
  })

  test('that repeat id and name in each chunk are one call', async () => {
    const calls = await callsOf(
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x"' }),
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: ':1}' }),
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '' }),
      toolCalls,
    )
    expect(calls).toEqual([{ id: 'a', name: 'Bash', arguments: '{"x":1}' }])
  })

  test('that get a new id in each chunk are one call', async () => {
    const calls = await callsOf(
      call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x"' }),
      call({ index: 0, id: 'b' }, { name: null, arguments: ':1}' }),
      toolCalls,
    )
    expect(calls).toEqual([{ id: 'a', name: 'Bash', arguments: '{"x":1}' }])
  })

  test('that are repeated completely at the end are one call', async () => {
    const whole = call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x":1}' })
    expect(await callsOf(whole, whole, toolCalls)).toHaveLength(1)
  })

  test('may have an object for arguments', async () => {
    const calls = await callsOf(call({ index: 0, id: 'a' }, { name: 'Bash', arguments: { x: [1] } }), toolCalls)
    expect(calls[0]?.arguments).toBe('{"x":[1]}')
  })

  test.each([null, '', 'null', undefined])('with the arguments %j get an empty object', async (value) => {
    const calls = await callsOf(call({ index: 0, id: 'a' }, { name: 'Ls', arguments: value }), toolCalls)
    expect(calls).toEqual([{ id: 'a', name: 'Ls', arguments: '{}' }])
  })

  test('get ids where these are missing, empty or not unique', async () => {
    const calls = await callsOf(
      call({ index: 0 }, { name: 'A', arguments: '{}' }),
      call({ index: 1, id: '' }, { name: 'B', arguments: '{}' }),
      call({ index: 2, id: 'same' }, { name: 'C', arguments: '{}' }),
      call({ index: 3, id: 'same' }, { name: 'D', arguments: '{}' }),
      toolCalls,
    )
    expect(calls.map(({ name }) => name)).toEqual(['A', 'B', 'C', 'D'])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(4)
    expect(calls[2]?.id).toBe('same')
    expect(calls[0]?.id).toMatch(/^call_\w+$/)
  })

  test('with arguments that are not JSON are the model’s mistake, and returned as it made them', async () => {
    const calls = await callsOf(call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{x:1' }), toolCalls)
    expect(calls[0]?.arguments).toBe('{x:1')
  })

  test('cut by the token limit are left out', async () => {
    const { answer } = await askScript([
      rawTurn(
        call({ index: 0, id: 'a' }, { name: 'Bash', arguments: '{"x":1}' }),
        call({ index: 1, id: 'b' }, { name: 'Write', arguments: '{"text":"half a f' }),
        delta({}, 'length'),
      ),
    ])
    expect(answer?.toolCalls.map(({ id }) => id)).toEqual(['a'])
    expect(answer?.stopReason).toBe('length')
  })
})

describe('the end of an answer', () => {
  test('is not proved by a finish reason in every chunk when the connection breaks inside a call', async () => {
    const half = {
      tool_calls: [{ index: 0, id: 'a', function: { name: 'Bash', arguments: '{"command":"rm -rf /tmp' } }],
    }
    const { answer, error } = await askScript([{ raw: [event(delta(half, 'stop')), ''], cut_after: 1 }])
    expect(answer).toBeUndefined()
    expect(error).toMatchObject({ type: 'network', retryable: true })
  })

  test('is not the usage that some send first', async () => {
    const usage = event({ choices: [], usage: { prompt_tokens: 3 } })
    const { error } = await askScript([{ raw: [usage, event(delta({ content: 'I will' })), ''], cut_after: 2 }])
    expect(error?.partial?.text).toBe('I will')
  })

  test.each([
    ['without [DONE]', { raw: [event(delta({ content: 'yes' }, 'stop'))] }],
    ['without a finish reason', rawTurn(delta({ content: 'yes' }))],
    ['with usage after an empty choice list', rawTurn(delta({ content: 'yes' }), { choices: [], usage: {} })],
    ['with the last line unfinished', { raw: [event(delta({ content: 'yes' })), 'data: [DONE]'] }],
    ['cut after the finish reason', { raw: [event(delta({ content: 'yes' }, 'stop')), 'x'], cut_after: 1 }],
    ['with a connection left open', { raw: [event(delta({ content: 'yes' })), 'data: [DONE]\n\n'], hang: true }],
  ])('may come %s', async (_, turn) => {
    const { answer, error } = await askScript([turn])
    expect(error).toBeUndefined()
    expect(answer?.text).toBe('yes')
  })

  test('without an end marker is truncated, not an answer', async () => {
    const { error } = await askScript([{ raw: [event(delta({ content: 'I will now' }))] }])
    expect(error).toMatchObject({ type: 'network', retryable: true, partial: { text: 'I will now' } })
  })

  test('is not waited for when the server falls silent after the finish reason', async () => {
    const turn = { raw: [event(delta({ content: 'yes' }, 'stop'))], hang: true }
    const { answer } = await askScript([turn], {}, { idleTimeoutMs: 50 })
    expect(answer?.text).toBe('yes')
  })

  test('has the usage that follows when everything was stopped after the finish reason', async () => {
    const pieces = [
      event(delta({ content: 'yes' }, 'stop')),
      '',
      '',
      event({ choices: [], usage: { prompt_tokens: 7 } }),
    ]
    const stopped = function* () {
      yield pieces[0]
      void takeTime(10).then(() => keepBusy(1500))
      yield* pieces.slice(1)
    }
    const raw = Object.assign([...pieces], { [Symbol.iterator]: stopped })
    const { answer } = await askScript([{ raw, chunk_delay_ms: 30 }], {}, { idleTimeoutMs: 1200 })
    expect(answer).toMatchObject({ text: 'yes', usage: { input_tokens: 7 } })
  })
})

describe('framing', () => {
  test('allows comments, CRLF and events without choices', async () => {
    const raw = [
      ': OPENROUTER PROCESSING\r\n\r\n',
      'data: {"choices":[]}\r\n\r\n',
      `data: ${JSON.stringify(delta({ content: 'yes' }))}\r\n\r\n`,
      `data: ${JSON.stringify(stop)}\r\n\r\ndata: [DONE]\r\n\r\n`,
    ]
    const { answer } = await askScript([{ raw }])
    expect(answer).toMatchObject({ text: 'yes', stopReason: 'stop' })
  })

  test('may be one JSON document, from a server that cannot stream', async () => {
    const { deltas, answer } = await askScript([
      {
        plain: true,
        text: 'Looking.',
        reasoning: 'hm',
        calls: [
          { name: 'Bash', arguments: { x: 1 } },
          { name: 'Ls', arguments: '' },
        ],
      },
    ])
    expect(shownText(deltas)).toBe('Looking.')
    expect(answer).toMatchObject({ text: 'Looking.', reasoning: 'hm', stopReason: 'tool_calls' })
    expect(answer?.toolCalls.map((each) => each.arguments)).toEqual(['{"x":1}', '{}'])
  })

  test('from something else is distinguished from an answer', async () => {
    for (const page of ['<!doctype html><title>Sign in</title>', '{"status":"ok"}', 'event: ping\ndata: {"a":1}\n\n']) {
      const { error } = await askScript([{ raw: [page] }])
      expect(error?.type, page).toBe('config')
      expect(error?.message).toContain('llm_config.base_url')
    }
  })
})

describe('usage', () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 64 },
    completion_tokens_details: { reasoning_tokens: 12 },
  }

  test('counts cached and reasoning tokens', async () => {
    const { answer } = await askScript([{ text: 'a', usage }])
    expect(answer?.usage).toEqual({ input_tokens: 100, output_tokens: 20, cached_tokens: 64, reasoning_tokens: 12 })
  })

  test('is zero where the provider says nothing or nonsense', async () => {
    const none = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 }
    expect((await askScript([{ text: 'a', usage: null }])).answer?.usage).toEqual(none)
    expect(
      (await askScript([{ text: 'a', usage: { prompt_tokens: '7', completion_tokens: -1 } }])).answer?.usage,
    ).toEqual(none)
    const huge = { prompt_tokens: 1e308, completion_tokens: 2 ** 53, total_tokens: 1e308 }
    expect((await askScript([{ text: 'a', usage: huge }])).answer?.usage).toEqual(none)
  })

  test('counts reasoning as output even if the provider excludes it from the completion', async () => {
    const { answer } = await askScript([
      {
        text: 'a',
        usage: {
          prompt_tokens: 10,
          completion_tokens: 5,
          total_tokens: 22,
          completion_tokens_details: { reasoning_tokens: 7 },
        },
      },
    ])
    expect(answer?.usage).toMatchObject({ output_tokens: 12, reasoning_tokens: 7 })
  })

  test('has a cost only when both prices are configured', async () => {
    const prices = { input_cost_per_token: 0.001, output_cost_per_token: 0.01 }
    expect((await askScript([{ text: 'a', usage }], prices)).answer?.costUsd).toBeCloseTo(0.3)
    expect((await askScript([{ text: 'a', usage }], { input_cost_per_token: 1 })).answer?.costUsd).toBeUndefined()
  })

  test('has a numeric cost, whatever the prices are', async () => {
    const prices = { input_cost_per_token: 1e308, output_cost_per_token: 1e308 }
    expect((await askScript([{ text: 'a', usage }], prices)).answer?.costUsd).toSatisfy(Number.isFinite)
  })
})
