/** The Chat Completions API, as the client of OpenAI uses it, on a real server: answers, streams, tools and errors. */
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { chunksOf, LOOK_UP, textOf } from '../support/chat-completions.ts'
import { until } from '../support/until.ts'

const stage = await setStageHere(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key', num_retries: 1 }
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)
let cuts = 0

/** What the scripted model does with the last message, or with the results of its calls. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 200)}` }
  if (said.includes('touch'))
    return {
      text: 'Now.',
      calls: [
        { name: 'Bash', arguments: { command: said.replaceAll(/.*(touch \w+).*/gs, '$1') } },
        { name: 'Bash', arguments: { command: 'echo done' } },
      ],
    }
  if (said.includes('mixed'))
    return {
      calls: [
        { name: 'Bash', arguments: { command: 'touch mixed' } },
        { name: 'look_up', arguments: { number: '17' } },
      ],
    }
  if (said.includes('both'))
    return {
      calls: ['17', '18'].map((number) => ({ name: 'look_up', arguments: { number } })),
    }
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('endless')) return { text: 'one '.repeat(300), chunk_delay_ms: 500 }
  if (said.includes('slowly')) return { text: 'one two three four five six', chunk_delay_ms: 60 }
  if (said.includes('cut off') && cuts++ === 0) return { text: 'one two three', chunk_delay_ms: 60, cut_after: 3 }
  if (said.includes('JSON')) return { text: '{"count": 17}' }
  if (said.includes('fail')) return { status: 400, error: { message: 'no such thing' } }
  return { reasoning: 'A greeting.', text: 'Hello there.' }
}

beforeAll(async () => {
  await server.call('PUT', '/profiles/coder', { tools: ['Bash'], llm_config: LLM })
  await server.call('PUT', '/profiles/free', { tools: ['Bash'], permission_mode: 'bypass', llm_config: LLM })
})

const ask = (content: string, more: object = {}) =>
  openai.chat.completions.create({ model: 'coder', messages: [{ role: 'user', content }], ...more, stream: false })

const follow = (content: string, more: object = {}) =>
  openai.chat.completions.create({ model: 'coder', messages: [{ role: 'user', content }], ...more, stream: true })

const count = async (): Promise<number> => (await server.call('GET', '/conversations/count')).body.count

test('an answer has text, reasoning and usage, and its conversation goes with it', async () => {
  const completion = await ask('Hello', { unknown_field: 1, temperature: 0.5, max_tokens: 5, user: 'user-17' })
  expect(completion).toMatchObject({
    object: 'chat.completion',
    model: 'coder',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'Hello there.', reasoning_content: 'A greeting.' },
      },
    ],
  })
  expect(completion.usage!.total_tokens).toBe(completion.usage!.prompt_tokens + completion.usage!.completion_tokens)
  expect(completion.usage!.completion_tokens).toBeGreaterThan(0)
  await expect.poll(count).toBe(0)
})

test('a stream has the same text in pieces, the usage if it was asked for, and an end', async () => {
  // What comes to a busy server at once is one piece.
  const chunks = await until('a stream in pieces', async () => {
    const all = await chunksOf(await follow('slowly', { stream_options: { include_usage: true } }))
    expect(textOf(all)).toBe('one two three four five six')
    return all.filter(({ choices }) => choices[0]?.delta.content).length > 2 && all
  })
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe('stop')
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
  const plain = await chunksOf(await follow('Hello'))
  expect(plain.every((chunk) => !('usage' in chunk))).toBe(true)
  expect(textOf(plain, 'reasoning_content')).toBe('A greeting.')
  const runner = openai.chat.completions.stream({ model: 'coder', messages: [{ role: 'user', content: 'Hello' }] })
  expect(await runner.finalContent()).toBe('Hello there.')
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'coder', messages: [{ role: 'user', content: 'Hello' }], stream: true }),
  })
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  expect(await response.text()).toMatch(/\n\ndata: \[DONE\]\n\n$/)
})

test('calls of tools of the server are lines of the reasoning, and never calls of the client', async () => {
  const chunks = await chunksOf(await follow('touch made', { model: 'free' }))
  expect(chunks.some(({ choices }) => choices[0]?.delta.tool_calls)).toBe(false)
  expect(textOf(chunks, 'reasoning_content')).toBe('[Bash] touch made\n[Bash] echo done')
  expect(textOf(chunks)).toMatch(/^Now\.\n\nRead: /)
  const whole = (await ask('touch made', { model: 'free' })).choices[0]!
  expect(whole).toMatchObject({
    finish_reason: 'stop',
    message: { reasoning_content: '[Bash] touch made\n[Bash] echo done' },
  })
  expect(whole.message.tool_calls).toBeUndefined()
  await expect.poll(count).toBe(0)
})

test('a text that was cut off is said again in a stream, and is not in a whole answer', async () => {
  cuts = 0
  const chunks = await chunksOf(await follow('cut off'))
  expect(textOf(chunks)).toMatch(/^one.*\n\n\(The text above was cut off, and does not count\.\)\n\nHello there\.$/s)
  cuts = 0
  expect((await ask('cut off')).choices[0]!.message.content).toBe('Hello there.')
})

test('functions of the client are called by it, also several at once and without a thread', async () => {
  const seen: string[] = []
  const tools = [
    {
      type: 'function' as const,
      function: {
        ...LOOK_UP.function,
        parse: JSON.parse,
        function: ({ number }: { number: string }) => {
          seen.push(number)
          return `${number} was shipped`
        },
      },
    },
  ]
  for (const stream of [false, true]) {
    const messages = [{ role: 'user' as const, content: 'look up both' }]
    const runner = stream
      ? openai.chat.completions.runTools({ model: 'coder', messages, tools, stream })
      : openai.chat.completions.runTools({ model: 'coder', messages, tools })
    expect(await runner.finalContent()).toContain('18 was shipped')
    expect(seen.splice(0)).toEqual(['17', '18'])
  }
  await expect.poll(count).toBe(0)
})

test('a call needs its result, and nothing is stored for one that does not wait', async () => {
  const question = { role: 'user', content: 'look up' }
  const first = (await ask('', { tools: [LOOK_UP], messages: [question] })).choices[0]!
  expect(first).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
  const { id } = first.message.tool_calls![0]!
  const result = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'shipped' })
  const again = (...rest: object[]) => ask('', { tools: [LOOK_UP], messages: [question, first.message, ...rest] })
  for (const wrong of ['call_17', `call_${'0'.repeat(32)}_x`, `${id}x`, '', 'x'.repeat(100_000)]) {
    const fault = { status: 400, param: 'tool_call_id' }
    await expect(again(result(wrong))).rejects.toMatchObject(fault)
    await expect(again(result(id), result(wrong))).rejects.toMatchObject(fault)
  }
  const other = [{ role: 'user', content: 'Another history' }, first.message, result(id)]
  await expect(ask('', { tools: [LOOK_UP], messages: other })).rejects.toMatchObject({ code: 'history_differs' })
  expect((await again(result(id))).choices[0]!).toMatchObject({ finish_reason: 'stop' })
  await expect(again(result(id))).rejects.toMatchObject({ status: 400, param: 'tool_call_id' })
})

test('a call of a function that the client has not seen ends with its next message', async () => {
  const headers = { 'X-Conversation-Id': 'unseen' }
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'mixed' }]
  const say = async () =>
    (await openai.chat.completions.create({ model: 'coder', messages, tools: [LOOK_UP] }, { headers })).choices[0]!
  messages.push((await say()).message)
  const { items } = (await server.call('GET', '/requests')).body
  const { conversation_id: id, request } = items.find(({ request: { kind } }: any) => kind === 'permission') // eslint-disable-line typescript/no-explicit-any
  const [{ tool_use_id, input_hash }] = request.payload.tool_uses
  const decisions = [{ tool_use_id, input_hash, behavior: 'allow' }]
  await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, { kind: 'permission', decisions })
  const waiting = async () => (await server.call('GET', `/conversations/${id}/requests`)).body.items
  await expect.poll(waiting).toMatchObject([{ kind: 'client_tool' }])
  messages.push({ role: 'user', content: 'Hello' })
  expect(await say()).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello there.' } })
  expect(await waiting()).toEqual([])
  await server.call('DELETE', `/conversations/${id}`)
})

test('an output schema gives JSON that fits it', async () => {
  const schema = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] }
  const response_format = { type: 'json_schema', json_schema: { name: 'counted', schema } }
  expect(JSON.parse((await ask('as JSON', { response_format })).choices[0]!.message.content!)).toEqual({ count: 17 })
  expect(JSON.parse(textOf(await chunksOf(await follow('as JSON', { response_format }))))).toEqual({ count: 17 })
})

test('a failed run is an error of OpenAI, also in a stream, and is not repeated by the client', async () => {
  const patient = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 2 })
  const before = stage.model.requests.length
  const messages = [{ role: 'user' as const, content: 'fail' }]
  const failed = patient.chat.completions.create({ model: 'coder', messages })
  await expect(failed).rejects.toMatchObject({ status: 500, code: 'server_error', type: 'server_error' })
  expect(stage.model.requests.length).toBe(before + 1)
  await expect(follow('fail').then(chunksOf)).rejects.toThrow(/no such thing/)
})

test('the earlier messages of a client without a thread are read by the agent, and bounded', async () => {
  const long = Array.from({ length: 200 }, (_, at) => [
    { role: 'user', content: `Question ${at}. ${'x'.repeat(5000)}` },
    { role: 'assistant', content: `Answer ${at}.` },
  ]).flat()
  const system = { role: 'system', content: 'Be very kind.' }
  await ask('', { messages: [system, ...long, { role: 'user', content: 'And now?' }] })
  const { text } = stage.model.requests.at(-1)!
  expect(text).toContain('Be very kind.')
  expect(text).toContain('Answer 199.')
  expect(text).not.toContain('Answer 0.')
  expect(text).toContain('without the oldest')
  expect(text.length).toBeLessThan(300_000)
})

test('what would change the meaning is refused by name', async () => {
  const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
  const audio = [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }] }]
  const wrong: [object, string][] = [
    [{ n: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
    [{ audio: { voice: 'x', format: 'wav' } }, 'audio'],
    [{ modalities: ['text', 'audio'] }, 'modalities'],
    [{ stop: ['x'] }, 'stop'],
    [{ functions: [LOOK_UP.function] }, 'functions'],
    [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools'],
    [{ tool_choice: { type: 'function', function: { name: 'look_up' } } }, 'tool_choice'],
    [{ messages: image('https://example.com/cat.png') }, 'image_url'],
    [{ messages: audio }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: [{ role: 'system', content: 'Alone.' }] }, 'messages'],
    [{ messages: [{ role: 'user', content: ' ' }] }, 'messages'],
    [{ messages: [{ role: 'assistant', content: 'I say' }] }, 'messages'],
  ]
  for (const [more, param] of wrong)
    await expect(ask('Hello', more), JSON.stringify(more)).rejects.toMatchObject({ status: 400, param })
  await expect(ask('Hello', { model: 'gpt-5' })).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
  for (const name of ['Bash', 'not a name', ''])
    await expect(ask('Hello', { tools: [{ ...LOOK_UP, function: { name } }] })).rejects.toMatchObject({ status: 400 })
  await expect.poll(count).toBe(0)
  const pixel =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  expect((await ask('', { messages: image(pixel) })).choices[0]!.finish_reason).toBe('stop')
})

test('a client without a thread that leaves stops the agent, and its conversation goes', async () => {
  const stream = await openai.chat.completions.create({
    model: 'free',
    messages: [{ role: 'user', content: 'endless' }],
    stream: true,
  })
  for await (const { choices } of stream) if (choices[0]?.delta.content) break
  await expect.poll(count).toBe(0)
  const stop = new AbortController()
  const left = openai.chat.completions.create(
    { model: 'free', messages: [{ role: 'user', content: 'endless' }] },
    { signal: stop.signal },
  )
  await expect.poll(count).toBe(1)
  stop.abort()
  await expect(left).rejects.toThrow()
  await expect.poll(count).toBe(0)
})

test('without a thread nobody can decide, so that a call which needs a decision is not run', async () => {
  const { message, finish_reason } = (await ask('touch never')).choices[0]!
  expect(finish_reason).toBe('stop')
  expect(message.content).toMatch(/waits for a decision about Bash .*touch never.*X-Conversation-Id/s)
})

test('a key needs both scopes, and uses its profiles only', async () => {
  const keyFor = async (fields: object) =>
    clientWith((await server.call('POST', '/keys', { name: 'a test', ...fields })).body.key)
  const messages = [
    { role: 'system' as const, content: 'Be kind.' },
    { role: 'user' as const, content: 'Hello' },
  ]
  const say = async (client: OpenAI, model: string) => await client.chat.completions.create({ model, messages })
  const narrow = await keyFor({ scopes: ['read', 'write'], profiles: ['coder'], user_id: 'user-17' })
  expect((await say(narrow, 'coder')).choices[0]!.message.content).toBe('Hello there.')
  await expect(say(narrow, 'free')).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
  const ofScope = (scopes: string[]) => keyFor({ scopes })
  await expect(say(await ofScope(['write']), 'coder')).rejects.toMatchObject({ status: 403 })
  await expect(say(await ofScope(['read']), 'coder')).rejects.toMatchObject({ status: 403 })
  await expect(say(clientWith('wrong'), 'coder')).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' })
})
