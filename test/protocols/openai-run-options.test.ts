/** What clients of OpenAI say for one answer: instructions, and how the model answers. The next answer is without it. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KEY } from '../support/server.ts'
import { setStage } from '../support/agent.ts'

const stage = await setStage(({ text, body }) => {
  if (text.includes('as data') && !text.includes('Again')) return { text: '{}' }
  if (body.messages.at(-1)?.role === 'tool') return { text: 'It is done.' }
  if (text.includes('touch it') && !text.includes('Again'))
    return { calls: [{ name: 'Bash', arguments: { command: 'touch it' } }] }
  if (text.includes('too long')) return { text: 'This is only', finish_reason: 'length' }
  return { text: 'Hello there.' }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)
const model = 'coder'

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  expect((await server.call('PUT', '/profiles/coder', { llm_config })).status).toBe(201)
  expect((await server.call('PUT', '/profiles/shell', { tools: ['Bash'], llm_config })).status).toBe(201)
})

/** Returns what the model was asked last. */
function asked() {
  const { body, text } = stage.model.requests.at(-1)!
  const system = JSON.stringify(body.messages[0])
  const { temperature, reasoning_effort } = Object(body)
  const max = body['max_completion_tokens'] ?? body['max_tokens']
  return { temperature, reasoning_effort, max, isInstructed: system.includes('In French.'), text }
}

const HAS = { temperature: 0.2, reasoning_effort: 'low', max: 77, isInstructed: true }
const LACKS = { temperature: undefined, reasoning_effort: undefined, max: undefined, isInstructed: false }
const OF_RESPONSE = {
  instructions: 'In French.',
  temperature: 0.2,
  max_output_tokens: 77,
  reasoning: { effort: 'low' },
} as const
const OF_CHAT = { temperature: 0.2, max_completion_tokens: 77, reasoning_effort: 'low' } as const

test('a response has its options, and the next one of the conversation has none', async () => {
  const first = await openai.responses.create({ model, input: 'Hello', ...OF_RESPONSE })
  expect(asked()).toMatchObject(HAS)
  expect(first).toMatchObject(OF_RESPONSE)
  const second = await openai.responses.create({ model, input: 'Again', previous_response_id: first.id })
  expect(asked()).toMatchObject(LACKS)
  expect(second).toMatchObject({ instructions: null, temperature: null, max_output_tokens: null })
  await openai.responses.create({ model, input: 'And again', previous_response_id: second.id, ...OF_RESPONSE })
  expect(asked()).toMatchObject(HAS)
  const ofModel: object = { model }
  const { id: conversation } = await openai.conversations.create(ofModel)
  await openai.responses.create({ model, input: 'Hello', conversation, ...OF_RESPONSE })
  expect(asked()).toMatchObject(HAS)
  await openai.responses.create({ model, input: 'Again', conversation })
  expect(asked()).toMatchObject(LACKS)
})

describe('a response that is read later has the options that it was created with', () => {
  const NONE = { instructions: null, temperature: null, max_output_tokens: null, reasoning: { effort: null } }
  const format = { type: 'json_schema' as const, name: 'greeting', schema: { type: 'object' }, strict: false }

  test('after a restart, and in the events of its stream', async () => {
    const fields = { ...OF_RESPONSE, tool_choice: 'none' as const, text: { format } }
    const first = await openai.responses.create({ model, input: 'as data', ...fields })
    const second = await openai.responses.create({ model, input: 'Again', previous_response_id: first.id })
    await server.restart('SIGKILL')
    const read = await openai.responses.retrieve(first.id)
    const { instructions, temperature, max_output_tokens, reasoning, tool_choice } = first
    expect(read).toMatchObject({ instructions, temperature, max_output_tokens, reasoning, tool_choice })
    expect(read).toMatchObject({ ...OF_RESPONSE, tool_choice: 'none' })
    expect(read.text!.format).toMatchObject({ type: 'json_schema', schema: { type: 'object' } })
    expect(await openai.responses.retrieve(second.id)).toMatchObject({ ...NONE, tool_choice: 'auto' })
    for await (const event of await openai.responses.retrieve(first.id, { stream: true }))
      if ('response' in event) expect(event.response).toMatchObject(OF_RESPONSE)
  })

  test('after a decision, which continues the run of the response before', async () => {
    const tools = [{ type: 'mcp', server_label: 'agent-server', server_url: 'https://unused.invalid' } as const]
    const asking = { model: 'shell', tools }
    const waiting = await openai.responses.create({ ...asking, input: 'touch it', ...OF_RESPONSE })
    const request = waiting.output.find(({ type }) => type === 'mcp_approval_request')!
    const approval = { type: 'mcp_approval_response', approval_request_id: request.id!, approve: true } as const
    const done = await openai.responses.create({ ...asking, input: [approval], previous_response_id: waiting.id })
    expect(asked()).toMatchObject(HAS)
    for (const { id } of [waiting, done]) expect(await openai.responses.retrieve(id)).toMatchObject(OF_RESPONSE)
    expect(done).toMatchObject(OF_RESPONSE)
    const next = await openai.responses.create({ ...asking, input: 'Again', previous_response_id: done.id })
    expect(await openai.responses.retrieve(next.id)).toMatchObject(NONE)
  })
})

test('a chat has its options, and the next one of its thread has none', async () => {
  const headers = { 'X-Conversation-Id': 'options-of-a-chat' }
  const system = { role: 'system' as const, content: 'In French.' }
  const hello = { role: 'user' as const, content: 'Hello' }
  const { choices } = await openai.chat.completions.create(
    { model, messages: [system, hello], ...OF_CHAT },
    { headers },
  )
  expect(asked()).toMatchObject(HAS)
  const messages = [hello, choices[0]!.message, { role: 'user' as const, content: 'Again' }]
  await openai.chat.completions.create({ model, messages }, { headers })
  expect(asked()).toMatchObject(LACKS)
  await openai.chat.completions.create({ model, messages: [system, hello], max_tokens: 5, temperature: null })
  expect(asked()).toMatchObject({ ...LACKS, max: 5, isInstructed: true })
})

test('an answer that is as long as the request allows is incomplete, and no error', async () => {
  const response = await openai.responses.create({ model, input: 'too long', max_output_tokens: 3 })
  expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
  expect(response).toMatchObject({ error: null, output_text: 'This is only' })
  expect(await openai.responses.retrieve(response.id)).toMatchObject({ status: 'incomplete', error: null })
  const messages = [{ role: 'user' as const, content: 'too long' }]
  const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 3 })
  expect(choices).toMatchObject([{ finish_reason: 'length', message: { content: 'This is only' } }])
})

describe('wrong values are refused by name', () => {
  const long = 'x'.repeat(256 * 1024 + 1)
  test.each<[object, string]>([
    [{ temperature: 3 }, 'temperature'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ reasoning: { effort: 'hard' } }, 'reasoning.effort'],
    [{ instructions: long }, 'instructions'],
  ])('of a response: %#', async (fields, param) => {
    const refused = openai.responses.create({ model, input: 'Hello', ...fields })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_value', param })
  })

  test.each<[object, string]>([
    [{ temperature: 3 }, 'temperature'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_completion_tokens: 1.5 }, 'max_completion_tokens'],
    [{ reasoning_effort: 'hard' }, 'reasoning_effort'],
    [
      {
        messages: [
          { role: 'system', content: long },
          { role: 'user', content: 'Hello' },
        ],
      },
      'messages',
    ],
  ])('of a chat: %#', async (fields, param) => {
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const refused = openai.chat.completions.create({ model, messages, ...fields })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_value', param })
  })
})

test('the instructions of a key that is limited to profiles are in its message, and not in the system prompt', async () => {
  const fields = { name: 'a test', scopes: ['read', 'write'], profiles: [model] }
  const limited = clientWith((await server.call('POST', '/keys', fields)).body.key)
  const first = await limited.responses.create({ model, input: 'Hello', ...OF_RESPONSE })
  expect(asked()).toMatchObject({ ...HAS, isInstructed: false, text: expect.stringContaining('In French.') })
  await limited.responses.create({ model, input: 'Again', previous_response_id: first.id, ...OF_RESPONSE })
  expect(asked()).toMatchObject({ ...HAS, isInstructed: false })
  const ofModel: object = { model }
  const { id: conversation } = await limited.conversations.create(ofModel)
  await limited.responses.create({ model, input: 'Hello', conversation, ...OF_RESPONSE })
  expect(asked()).toMatchObject({ ...HAS, isInstructed: false, text: expect.stringContaining('In French.') })
})
