/** What is sent to Anthropic's Messages API. */
import { describe, expect, test } from 'vitest'
import type { LlmConfig } from '../../../src/contract/values/llm-config.ts'
import { createRequestWriter } from '../../../src/llm/anthropic/messages-request.ts'
import { firstDialect } from '../../../src/llm/anthropic/messages-dialect.ts'
import { endpointOf } from '../../../src/llm/endpoints/endpoint.ts'
import type { LlmRequest, ModelMessage } from '../../../src/llm/llm.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, QUESTION } from '../asking.ts'

const user = (words: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text: words }] })
const image = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
const call = (id: string, text = '{"command":"ls"}') => ({ id, name: 'Bash', arguments: text })
const called = (...ids: string[]): ModelMessage => ({
  role: 'assistant',
  text: '',
  toolCalls: ids.map((id) => call(id)),
})
const result = (toolCallId: string, content = 'fine', more: object = {}): ModelMessage => ({
  role: 'tool',
  toolCallId,
  content,
  ...more,
})
const thinking = (text: string, provider: 'anthropic' | 'openai_responses' = 'anthropic', more: object = {}) =>
  ({ type: 'reasoning', text, provider_data: { provider, kind: 'signature', data: `of ${text}` }, ...more }) as const

/** The body for the vendor's own endpoint, unless the configuration has another one. */
function bodyOf(messages: readonly ModelMessage[], config: LlmConfig = {}, request: Partial<LlmRequest> = {}) {
  const whole = { model: 'claude-sonnet-5', base_url: 'https://api.anthropic.com', ...config }
  const endpoint = endpointOf(whole)
  const write = createRequestWriter(whole, endpoint)
  return JSON.parse(write({ ...QUESTION, messages, ...request }, firstDialect(endpoint)).toString())
}

test('a request is the model, the limits, the tools, the system prompt and the messages', async () => {
  const { requests } = await askScript([{ text: 'done' }], { provider: 'anthropic', api_key: 'key' })
  expect(requests[0]).toMatchObject({
    path: '/v1/messages',
    headers: { 'x-api-key': 'key', 'anthropic-version': '2023-06-01' },
  })
  expect(requests[0]?.headers).not.toHaveProperty('authorization')
  const mark = { cache_control: { type: 'ephemeral' } }
  expect(requests[0]?.body).toEqual({
    model: 'test-model',
    max_tokens: 32_000,
    stream: true,
    tools: [
      { name: 'Bash', description: 'Runs a command.', input_schema: { type: 'object', properties: {} }, ...mark },
    ],
    system: [{ type: 'text', text: 'Be brief.', ...mark }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What is here?', ...mark }] }],
  })
})

test('instructions of a run follow the system prompt, which stays in the cache without them', () => {
  const [prompt] = bodyOf([user('Hi')]).system
  const instructions = { type: 'text', text: 'In French.' }
  expect(bodyOf([user('Hi')], {}, { instructions: 'In French.' }).system).toEqual([prompt, instructions])
  expect(bodyOf([user('Hi')], {}, { instructions: 'In French.', system: '' }).system).toEqual([instructions])
  expect(bodyOf([user('Hi')], {}, { instructions: ' ', system: '' })).not.toHaveProperty('system')
})

test('contains the configured fields, overridden by extra_body', () => {
  const body = bodyOf([user('Hi')], {
    temperature: 0.5,
    top_k: 3,
    max_output_tokens: 99,
    tool_choice: 'required',
    extra_body: { top_k: 4, metadata: { user_id: 'u' }, messages: [] },
  })
  expect(body).toMatchObject({
    temperature: 0.5,
    top_k: 4,
    max_tokens: 99,
    tool_choice: { type: 'any' },
    metadata: { user_id: 'u' },
    messages: [{ role: 'user' }],
  })
})

test('the results of a turn are one message with what the user says next, first and in the order of the calls', () => {
  const { messages } = bodyOf([
    user('Begin.'),
    called('a', 'b'),
    result('a', 'one'),
    result('b', 'It failed.', { isError: true }),
    user('Go on.'),
    user('And?'),
  ])
  expect(messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'Begin.' }] },
    {
      role: 'assistant',
      content: ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } })),
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: 'one' },
        { type: 'tool_result', tool_use_id: 'b', content: 'It failed.', is_error: true },
        { type: 'text', text: 'Go on.' },
        { type: 'text', text: 'And?' },
      ],
    },
  ])
})

test('ids and names of other providers are written in characters that the API accepts, also in results', () => {
  const [, answer, results] = bodyOf([user('Hi'), called('functions.Bash:0'), result('functions.Bash:0')]).messages
  expect(answer.content[0].id).toMatch(/^[\w-]{1,64}$/)
  expect(results.content[0].tool_use_id).toBe(answer.content[0].id)
})

test('arguments that are not a JSON object are shown inside one', () => {
  const answer: ModelMessage = { role: 'assistant', text: '', toolCalls: [call('a', '{"x')] }
  expect(bodyOf([user('Hi'), answer, result('a')]).messages[1].content[0].input).toEqual({ invalid_arguments: '{"x' })
})

describe('images', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0=' }
  const messages: ModelMessage[] = [
    { role: 'user', content: [image] },
    called('a'),
    result('a', 'see', { images: [image], isError: true }),
    { role: 'user', content: [{ type: 'text', text: 'The images:' }, image], repeatsImages: true },
  ]

  test('are part of the message, and of the result they came with', () => {
    const { messages: sent } = bodyOf(messages)
    expect(sent[0].content).toEqual([{ type: 'image', source }])
    expect(sent[2].content).toEqual([
      {
        type: 'tool_result',
        tool_use_id: 'a',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', source },
        ],
      },
    ])
  })

  test('are replaced by a note with disable_vision, and when the endpoint refuses them', async () => {
    expect(JSON.stringify(bodyOf(messages, { disable_vision: true }))).not.toContain('iVBORw0=')
    const error = { type: 'invalid_request_error', message: 'This model does not support images' }
    await using model = await startScriptedModel(({ text }) =>
      text.includes('base64') ? { status: 400, error } : { text: 'done' },
    )
    const { answer } = await ask(chatWith(model, { provider: 'anthropic' }), { ...QUESTION, messages })
    expect(answer?.text).toBe('done')
    expect(model.requests[1]?.text.match(/was left out/g)).toHaveLength(2)
  })
})

describe('thinking', () => {
  const parts = [
    thinking('first'),
    { type: 'text', text: 'Both:' },
    thinking('second', 'anthropic', { calls_before: 1 }),
  ] as const
  const answer: ModelMessage = { role: 'assistant', text: 'Both:', toolCalls: [call('a'), call('b')], parts }

  test('is sent back unchanged and in its place', () => {
    const { messages } = bodyOf([user('Hi'), answer, result('a'), result('b')])
    const shown = (each: Record<string, unknown>) => [
      each['type'],
      each['id'] ?? each['thinking'] ?? each['text'],
      each['signature'],
    ]
    expect(messages[1].content.map(shown)).toEqual([
      ['thinking', 'first', 'of first'],
      ['text', 'Both:', undefined],
      ['tool_use', 'a', undefined],
      ['thinking', 'second', 'of second'],
      ['tool_use', 'b', undefined],
    ])
  })

  test('that is encrypted is sent back as such', () => {
    const proof = { provider: 'anthropic', kind: 'encrypted', data: 'xyz' } as const
    const redacted: ModelMessage = {
      role: 'assistant',
      text: 'Hm',
      toolCalls: [],
      parts: [
        { type: 'reasoning', text: '', provider_data: proof },
        { type: 'text', text: 'Hm' },
      ],
    }
    expect(bodyOf([user('Hi'), redacted, user('Go on')]).messages[1].content[0]).toEqual({
      type: 'redacted_thinking',
      data: 'xyz',
    })
  })

  test('of another provider, or without a signature, is left out', () => {
    const foreign: ModelMessage = {
      role: 'assistant',
      text: 'Hm',
      reasoning: 'plain',
      toolCalls: [],
      parts: [
        thinking('foreign', 'openai_responses'),
        { type: 'reasoning', text: 'plain' },
        { type: 'text', text: 'Hm' },
      ],
    }
    expect(bodyOf([user('Hi'), foreign, user('Go on')]).messages[1].content).toEqual([{ type: 'text', text: 'Hm' }])
  })

  test('that the endpoint refuses is left out, so that the conversation can continue; later thinking is kept', async () => {
    await using model = await startScriptedModel(({ text }) =>
      text.includes('of first')
        ? {
            status: 400,
            error: {
              type: 'invalid_request_error',
              message: 'messages.1.content.0: Invalid `signature` in `thinking` block',
            },
          }
        : { text: 'done' },
    )
    const llm = chatWith(model, { provider: 'anthropic' })
    const messages = [user('Hi'), answer, result('a'), result('b')]
    expect((await ask(llm, { ...QUESTION, messages })).answer?.text).toBe('done')
    const later: ModelMessage = {
      role: 'assistant',
      text: 'x',
      toolCalls: [],
      parts: [thinking('later'), { type: 'text', text: 'x' }],
    }
    await ask(llm, { ...QUESTION, messages: [...messages, later, user('Go on')] })
    // A compaction makes another, shorter list: what is left of it was never refused.
    await ask(llm, { ...QUESTION, messages: [user('Hi'), later, user('Go on')] })
    expect(model.requests).toHaveLength(4)
    expect(model.requests.map(({ text }) => [text.includes('of first'), text.includes('of later')])).toEqual([
      [true, false],
      [false, false],
      [false, true],
      [false, true],
    ])
  })

  test.each([
    [
      'claude-sonnet-5',
      'xhigh',
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'xhigh' } },
    ],
    [
      'claude-opus-4-6',
      'minimal',
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'low' } },
    ],
    ['claude-opus-4-5-20251101', 'low', { thinking: { type: 'enabled', budget_tokens: 4096 } }],
    ['claude-3-7-sonnet-latest', 'high', { thinking: { type: 'enabled', budget_tokens: 24_000 } }],
    ['claude-sonnet-5', 'none', { thinking: { type: 'disabled' } }],
  ] as const)('%s with effort %s', (model, reasoning_effort, fields) => {
    expect(bodyOf([user('Hi')], { model, reasoning_effort })).toMatchObject(fields)
  })

  test('with a budget is not requested in a turn that began without it, which the API refuses', () => {
    const config = { model: 'claude-sonnet-4-5', reasoning_effort: 'low' } as const
    const asked = (messages: readonly ModelMessage[]) => 'thinking' in bodyOf(messages, config)
    expect(asked([user('Hi'), called('a'), result('a')])).toBe(false)
    expect(asked([user('Hi'), answer, result('a'), result('b'), called('c'), result('c')])).toBe(true)
    expect(asked([user('Hi'), called('a'), result('a'), user('Go on')])).toBe(true)
    expect('thinking' in bodyOf([user('Hi')], { ...config, max_output_tokens: 1500 })).toBe(false)
  })
})

describe('the prompt cache', () => {
  const answer: ModelMessage = {
    role: 'assistant',
    text: 'Both:',
    toolCalls: [call('b')],
    parts: [thinking('first'), { type: 'text', text: 'Both:' }],
  }
  const all = [
    user('Begin.'),
    called('a'),
    result('a', 'fine', { images: [image] }),
    { role: 'user', content: [image], repeatsImages: true } as const,
    answer,
    result('b'),
    user('Go on.'),
    { role: 'assistant', text: 'Done.', toolCalls: [] } as const,
    user('Thanks.'),
  ]
  const requests = (base_url: string) => {
    const config = { model: 'claude-sonnet-5', base_url, provider: 'anthropic' } as const
    const endpoint = endpointOf(config)
    const write = createRequestWriter(config, endpoint)
    const messages: ModelMessage[] = []
    return all.map((message) => {
      messages.push(message)
      return write({ ...QUESTION, messages }, firstDialect(endpoint)).toString()
    })
  }
  const marks = (text: string) => text.match(/"cache_control":\{"type":"ephemeral"\}/g) ?? []

  test('at the vendor is marked without a change of the messages: each request extends the previous one byte for byte', () => {
    let before = ''
    for (const text of requests('https://api.anthropic.com/v1')) {
      expect(text.startsWith(before)).toBe(true)
      expect(marks(text)).toHaveLength(3)
      before = text.replace(/\]\}\]\}$/, '')
    }
  })

  test('elsewhere is marked at the last block of the last message, and nowhere else in the messages', () => {
    const plain = requests('https://api.anthropic.com/v1')
    requests('https://llm.example.com').forEach((text, at) => {
      expect(marks(text)).toHaveLength(3)
      const body = JSON.parse(text)
      expect(body.messages.at(-1).content.at(-1)).toHaveProperty('cache_control')
      delete body.messages.at(-1).content.at(-1).cache_control
      expect(body.messages).toEqual(JSON.parse(plain[at]!).messages)
    })
  })

  test('is not marked where the endpoint refuses the mark', async () => {
    const { answer: heard, requests: sent } = await askScript(
      ({ text }) =>
        text.includes('cache_control')
          ? { status: 400, error: { message: 'messages.0.content.0.cache_control: Extra inputs are not permitted' } }
          : { text: 'done' },
      { provider: 'anthropic' },
    )
    expect(heard?.text).toBe('done')
    expect(marks(sent.at(-1)!.text)).toEqual([])
  })
})

test('an output limit that the model does not have is lowered to the one it has', async () => {
  const { answer, requests } = await askScript(
    ({ body }) =>
      Number(body['max_tokens']) > 8192
        ? {
            status: 400,
            error: {
              type: 'invalid_request_error',
              message: 'max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for the model',
            },
          }
        : { text: 'done' },
    { provider: 'anthropic' },
  )
  expect(answer?.text).toBe('done')
  expect(requests.map(({ body }) => body['max_tokens'])).toEqual([32_000, 8192])
})

test('the schema of the output is its format at the vendor, together with the effort, and elsewhere not sent', () => {
  const outputSchema = { type: 'object' }
  const config = { reasoning_effort: 'low' } as const
  const format = { type: 'json_schema', schema: outputSchema }
  expect(bodyOf([user('Hi')], config, { outputSchema }).output_config).toEqual({ effort: 'low', format })
  const elsewhere = { ...config, base_url: 'https://llm.example.com', provider: 'anthropic' } as const
  expect(bodyOf([user('Hi')], elsewhere, { outputSchema }).output_config).toEqual({ effort: 'low' })
})
