/** What is sent to OpenAI's Responses API. */
import { describe, expect, test } from 'vitest'
import type { LlmConfig } from '../../../src/contract/values/llm-config.ts'
import type { AssistantPart } from '../../../src/contract/values/message.ts'
import { endpointOf } from '../../../src/llm/endpoints/endpoint.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'
import { firstDialect } from '../../../src/llm/responses/responses-dialect.ts'
import { createRequestWriter } from '../../../src/llm/responses/responses-request.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, QUESTION } from '../asking.ts'

const config = { provider: 'openai_responses' } as const
const user = (words: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text: words }] })
const image = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
const call = (id: string) => ({ id, name: 'Bash', arguments: '{"command":"ls"}' })
const callItem = (call_id: string) => ({ type: 'function_call', call_id, name: 'Bash', arguments: '{"command":"ls"}' })
const result = (toolCallId: string, more: object = {}): ModelMessage => ({
  role: 'tool',
  toolCallId,
  content: 'fine',
  ...more,
})
const thought = (text: string, id?: string, more: object = {}): AssistantPart =>
  ({
    type: 'reasoning',
    text,
    ...(id !== undefined && {
      provider_data: { provider: 'openai_responses', kind: 'encrypted', data: `of ${id}`, id },
    }),
    ...more,
  }) as const

function writerOf(more: LlmConfig = {}) {
  const whole = { model: 'gpt-6', ...more }
  const endpoint = endpointOf(whole)
  const write = createRequestWriter(whole, endpoint)
  return (messages: readonly ModelMessage[]) => write({ ...QUESTION, messages }, firstDialect(endpoint)).toString()
}
const bodyOf = (messages: readonly ModelMessage[], more: LlmConfig = {}) => JSON.parse(writerOf(more)(messages))

test('a request has the whole conversation and stores nothing', async () => {
  const { requests } = await askScript([{ text: 'done' }], { ...config, model: 'gpt-6', api_key: 'key' })
  expect(requests[0]).toMatchObject({ path: '/v1/responses', headers: { authorization: 'Bearer key' } })
  expect(requests[0]?.body).toEqual({
    model: 'gpt-6',
    stream: true,
    store: false,
    include: ['reasoning.encrypted_content'],
    reasoning: { summary: 'auto' },
    tools: [
      {
        type: 'function',
        name: 'Bash',
        description: 'Runs a command.',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
    ],
    instructions: 'Be brief.',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'What is here?' }] }],
  })
})

test('instructions of a run follow the system prompt, until they are left out', () => {
  const whole = { model: 'gpt-6' }
  const endpoint = endpointOf(whole)
  const write = createRequestWriter(whole, endpoint)
  const sent = (instructions?: string) =>
    JSON.parse(write({ ...QUESTION, instructions }, firstDialect(endpoint)).toString()).instructions
  expect([sent(), sent('In French.'), sent()]).toEqual(['Be brief.', 'Be brief.\n\nIn French.', 'Be brief.'])
})

test('contains the configured fields, overridden by extra_body', () => {
  const more = {
    temperature: 0.5,
    max_output_tokens: 99,
    reasoning_effort: 'low',
    tool_choice: 'required',
    extra_body: { temperature: 1, input: [], prompt_cache_key: 'k' },
  } as const
  expect(bodyOf([user('Hi')], more)).toMatchObject({
    temperature: 1,
    max_output_tokens: 99,
    reasoning: { effort: 'low', summary: 'auto' },
    tool_choice: 'required',
    prompt_cache_key: 'k',
    input: [{ role: 'user' }],
  })
})

describe('an answer', () => {
  const parts = [
    thought('One.'),
    thought('Two.', 'rs_1'),
    { type: 'text', text: 'Both:', phase: 'commentary' },
    thought('', 'rs_2', { calls_before: 1 }),
  ] as const
  const answer: ModelMessage = { role: 'assistant', text: 'Both:', toolCalls: [call('a'), call('b')], parts }

  test('is its items, with the reasoning in its place', () => {
    const { input } = bodyOf([user('Hi'), answer, result('a'), result('b')])
    expect(input.slice(1)).toEqual([
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [
          { type: 'summary_text', text: 'One.' },
          { type: 'summary_text', text: 'Two.' },
        ],
        encrypted_content: 'of rs_1',
      },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Both:' }],
        phase: 'commentary',
      },
      callItem('a'),
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'of rs_2' },
      callItem('b'),
      { type: 'function_call_output', call_id: 'a', output: 'fine' },
      { type: 'function_call_output', call_id: 'b', output: 'fine' },
    ])
  })

  test('that ends with reasoning is sent without it: the API refuses reasoning that nothing follows', () => {
    const last: ModelMessage = {
      role: 'assistant',
      text: 'Hm',
      toolCalls: [],
      parts: [thought('', 'rs_1'), { type: 'text', text: 'Hm' }, thought('More.', 'rs_2')],
    }
    const { input } = bodyOf([user('Hi'), last, user('Go on.')])
    expect(input.map(({ type }: { type: string }) => type)).toEqual(['message', 'reasoning', 'message', 'message'])
  })

  test('without reasoning of this provider has none', () => {
    const proof = { provider: 'anthropic', kind: 'signature', data: 'x' } as const
    const foreign: ModelMessage = {
      role: 'assistant',
      text: 'Hm',
      reasoning: 'plain',
      toolCalls: [call('a.b:0')],
      parts: [
        { type: 'reasoning', text: 'foreign', provider_data: proof },
        { type: 'text', text: 'Hm' },
      ],
    }
    const { input } = bodyOf([user('Hi'), foreign, result('a.b:0')])
    expect(input.map(({ type }: { type: string }) => type)).toEqual([
      'message',
      'message',
      'function_call',
      'function_call_output',
    ])
    expect(input[2].call_id).toMatch(/^[\w-]{1,64}$/)
    expect(input[3].call_id).toBe(input[2].call_id)
  })

  test('whose reasoning another organization encrypted is sent without it, so that the conversation can continue', async () => {
    await using model = await startScriptedModel([{ text: 'no answer yet' }, { text: 'done' }])
    const llm = chatWith(model, config)
    const messages = [user('Hi'), answer, result('a'), result('b')]
    expect((await ask(llm, { ...QUESTION, messages })).answer?.text).toBe('done')
    expect(model.requests.map(({ text }) => text.includes('encrypted_content":"of'))).toEqual([true, false])
  })

  test('keeps its messages: each request extends the previous one byte for byte', () => {
    const all = [user('Hi'), answer, result('a'), result('b'), user('Go on.'), { ...answer, toolCalls: [] }, user('Hm')]
    const messages: ModelMessage[] = []
    const write = writerOf()
    let before = ''
    for (const message of all) {
      messages.push(message)
      const text = write(messages)
      expect(text.startsWith(before)).toBe(true)
      before = text.slice(0, -2)
    }
  })
})

test('images are part of the message, and of the result they came with', () => {
  const messages: ModelMessage[] = [
    { role: 'user', content: [image] },
    { role: 'assistant', text: '', toolCalls: [call('a')] },
    result('a', { images: [image] }),
    { role: 'user', content: [{ type: 'text', text: 'The images:' }, image], repeatsImages: true },
  ]
  const shown = { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,iVBORw0=' }
  const { input } = bodyOf(messages)
  expect(input[0].content).toEqual([shown])
  expect(input[2].output).toEqual([{ type: 'input_text', text: 'fine' }, shown])
  expect(input).toHaveLength(3)
  expect(JSON.stringify(bodyOf(messages, { disable_vision: true }))).not.toContain('iVBORw0=')
})

test.each([
  ['include', 'Encrypted content is not supported with this model.', 'reasoning.encrypted_content'],
  ['reasoning', 'Your organization must be verified to generate reasoning summaries.', '"summary":"auto"'],
])('%s is left out where the endpoint refuses it', async (_field, message, refused) => {
  const { answer, requests } = await askScript(
    ({ text }): ScriptedTurn => (text.includes(refused) ? { status: 400, error: { message } } : { text: 'done' }),
    { ...config, model: 'gpt-6' },
  )
  expect(answer?.text).toBe('done')
  expect(requests).toHaveLength(2)
})

test.each([
  ['max_output_tokens', 1],
  ['content_filter', 1],
])('an incomplete answer has the reason: %s', async (finish_reason, whole) => {
  const calls = [
    { name: 'Bash', arguments: '{"command":"ls"}' },
    { name: 'Bash', arguments: '{"command":"rm' },
  ]
  const { answer } = await askScript([{ calls, finish_reason }], config)
  expect(answer?.stopReason).toBe(finish_reason)
  expect(answer?.toolCalls).toHaveLength(whole)
})

test('the schema of the output is the format of the text at the vendor', () => {
  const outputSchema = { type: 'object' }
  const endpoint = endpointOf({ model: 'gpt-6' })
  const write = createRequestWriter({ model: 'gpt-6' }, endpoint)
  const body = JSON.parse(write({ ...QUESTION, outputSchema }, firstDialect(endpoint)).toString())
  expect(body.text).toEqual({ format: { type: 'json_schema', name: 'output', schema: outputSchema, strict: false } })
})
