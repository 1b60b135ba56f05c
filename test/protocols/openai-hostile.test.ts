/** Hostile and careless clients of the OpenAI API, on a real server: what they repeat, invent, take back or leave. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStageHere } from '../support/agent.ts'
import { LOOK_UP } from '../support/chat-completions.ts'
import { KEY } from '../support/server.ts'

const stage = await setStageHere(({ body }) => turnFor(body), { OPENHANDS_MAX_CONCURRENT_RUNS: '2' })
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
const openai = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 0 })

/** Does what the user asked last, or names all that is new since the last answer. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const textIn = ({ content }: { content?: unknown }) =>
    typeof content === 'string' ? content : JSON.stringify(content)
  const added = messages
    .slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
    .filter(({ role }) => role !== 'system')
  const said = added.map(textIn).join(', ')
  if (added.at(-1)?.role === 'user' && said.endsWith('look up'))
    return { text: 'I look.', calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.endsWith('slowly')) return { text: 'one '.repeat(300), chunk_delay_ms: 500 }
  return { text: `New: ${said}.` }
}

beforeAll(async () => {
  const block = { type: 'command', command: 'if grep -q forbidden; then echo "not that" >&2; exit 2; fi' }
  await server.call('PUT', '/profiles/coder', { tools: ['Bash'], llm_config: LLM })
  const hooks = { UserPromptSubmit: [{ hooks: [block] }] }
  await server.call('PUT', '/profiles/hooked', { tools: [], hooks, llm_config: LLM })
})

type Message = { role: string; content?: unknown; tool_call_id?: string; tool_calls?: unknown }
type Sent = { readonly messages: readonly Message[]; readonly [field: string]: unknown }

/** As a client that is no library: whatever it sends. */
async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text.startsWith('{') ? JSON.parse(text) : {},
  }
}

/** Requests of one thread. */
function chatOf(thread: string, more: object = {}, model = 'coder') {
  const send = (sent: Sent, headers: Record<string, string> = {}) =>
    post('/chat/completions', { model, ...more, ...sent }, { 'x-conversation-id': thread, ...headers })
  return send
}

const user = (content: unknown): Message => ({ role: 'user', content })
const assistant = (content: string): Message => ({ role: 'assistant', content })

async function idOf(thread: string): Promise<string> {
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  return items.find(({ external_id }: { external_id?: string }) => external_id === thread).id
}

const waitingIn = async (id: string) => (await server.call('GET', `/conversations/${id}/requests`)).body.items

/** A thread in which the agent waits for the result of a function. */
async function askToLookUp(thread: string, model = 'coder') {
  const send = chatOf(thread, { tools: [LOOK_UP] }, model)
  const first = [user('look up')]
  const { message } = (await send({ messages: first })).body.choices[0]
  const result = (content: string, id = message.tool_calls[0].id) => ({ role: 'tool', tool_call_id: id, content })
  return { send, before: [...first, message], result, id: await idOf(thread), callId: message.tool_calls[0].id }
}

test('an answer that the client sends is the one that was given, or its beginning', async () => {
  const send = chatOf('exact')
  expect((await send({ messages: [user('first')] })).body.choices[0].message.content).toBe('New: first.')
  for (const wrong of ['first.', 'New', 'New: first. And more', 'New: firs!', 'ew: first.']) {
    const messages = [user('first'), assistant(wrong), user('second')]
    const { status, body, headers } = await send({ messages })
    if (wrong === 'New') expect(status).toBe(200)
    else {
      expect([wrong, status, body.error.code]).toEqual([wrong, 409, 'history_differs'])
      expect(headers.get('x-should-retry')).toBe('false')
    }
  }
})

test('the same results are one turn, however often they are sent, and other ones are refused', async () => {
  const { send, before, result, id, callId } = await askToLookUp('results')
  const messages = [...before, result('shipped')]
  const key = { 'idempotency-key': 'results-17' }
  const [first, again] = await Promise.all([send({ messages }, key), send({ messages }, key)])
  const answers = [first, again, await send({ messages }, key), await send({ messages })]
  expect(answers.flatMap(({ body }) => body.choices?.[0].message.content ?? [])).toContain('New: shipped.')
  for (const { status, body } of answers)
    if (status === 409) expect(body.error.code).toBe('conversation_running')
    else expect(body.choices[0].message.content).toBe('New: shipped.')
  expect(await stage.events(id, 'types=RequestAnswered')).toHaveLength(1)
  const other = await send({ messages: [...before, result('lost')] }, key)
  expect([other.status, other.body.error.code]).toEqual([409, 'already_answered'])
  expect(other.headers.get('x-should-retry')).toBe('false')
  const { before: of, send: elsewhere } = await askToLookUp('elsewhere')
  for (const wrong of [callId, callId.replace('_', '_t'), callId.replace(/_([^_]+)$/, 't_$1')]) {
    const { status, body } = await elsewhere(
      { messages: [...of, result('x', wrong)] },
      { 'x-stainless-retry-count': '1' },
    )
    expect([wrong, status, body.error.param]).toEqual([wrong, 400, 'tool_call_id'])
  }
  const twice = await elsewhere({
    messages: [...of, result('x', of[1].tool_calls[0].id), result('y', of[1].tool_calls[0].id)],
  })
  expect(twice.status).toBe(400)
})

test('results and a message are one turn, or nothing of them is stored', async () => {
  const { send, before, result, id } = await askToLookUp('both')
  const messages = [...before, result('shipped'), user('thanks')]
  const key = { 'idempotency-key': 'both-17' }
  for (const _ of [1, 2]) {
    const { body } = await send({ messages }, key)
    expect(body.choices[0].message.content).toMatch(/^New: shipped, .*thanks\.$/)
  }
  expect(await stage.events(id, 'types=RequestAnswered,UserMessage,Result')).toHaveLength(4)
  const more = [...messages, assistant('New: shipped, thanks.'), user('more')]
  expect((await send({ messages: more })).status).toBe(200)

  const hooked = await askToLookUp('hooked', 'hooked')
  const refused = await hooked.send({ messages: [...hooked.before, hooked.result('shipped'), user('forbidden')] })
  expect([refused.status, refused.body.error.code]).toEqual([403, 'blocked_by_hook'])
  expect(await waitingIn(hooked.id)).toHaveLength(1)
  const { status } = await hooked.send({ messages: [...hooked.before, hooked.result('shipped')] })
  expect(status).toBe(200)
})

test('a repeated request without a thread does not end the first one, and the last one ends both', async () => {
  const body = { model: 'coder', tools: [LOOK_UP], messages: [user('look up')] }
  const { message } = (await post('/chat/completions', body)).body.choices[0]
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'slowly' }
  const messages = [...body.messages, message, result]
  const first = post('/chat/completions', { ...body, messages })
  await expect.poll(() => stage.model.requests.filter(({ text }) => text.includes('slowly')).length).toBe(1)
  const again = { ...body, messages, stream: true } as unknown as OpenAI.ChatCompletionCreateParamsStreaming
  // It leaves after the first piece.
  for await (const _ of await openai.chat.completions.create(again)) break
  const id = message.tool_calls[0].id.slice(5, 37).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  await server.call('POST', `/conversations/${id}/pause`, { interrupt: true })
  expect((await first).body.choices[0].message.content).toContain('(The agent was stopped.)')
  await expect.poll(async () => (await server.call('GET', `/conversations/${id}`)).status).toBe(410)
})

test('a result continues a thread that was paused while its function waited', async () => {
  const { send, before, result, id } = await askToLookUp('paused')
  await server.call('POST', `/conversations/${id}/pause`, {})
  await expect.poll(async () => (await server.call('GET', `/conversations/${id}`)).body.status).toBe('paused')
  const { body } = await send({ messages: [...before, result('shipped')] })
  expect(body.choices[0].message.content).toBe('New: shipped.')
})

test('a request that is refused takes nothing back', async () => {
  const send = chatOf('rights')
  await send({ messages: [user('first')] })
  const id = await idOf('rights')
  const { last_seq } = (await server.call('GET', `/conversations/${id}`)).body
  const tools = [{ ...LOOK_UP, function: { name: 'Bash' } }]
  const format = { type: 'json_schema', json_schema: { schema: { type: 'object', $ref: '#/nowhere' } } }
  const parts = Array.from({ length: 1001 }, () => ({ type: 'text', text: 'x' }))
  for (const more of [{ tools }, { response_format: format }, { messages: [user(parts)] }])
    expect([more, (await send({ messages: [user('first')], ...more })).status]).toEqual([more, 400])
  const many = await chatOf('many')({ messages: Array.from({ length: 1001 }, () => user('x')) })
  expect([many.status, many.body.error.param]).toEqual([400, 'messages'])
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  expect(items.map(({ external_id }: { external_id?: string }) => external_id)).not.toContain('many')
  expect((await server.call('GET', `/conversations/${id}`)).body.last_seq).toBe(last_seq)
})

test('a message that was withdrawn ends its request, and the same request begins again', async () => {
  const slow = ['slow-1', 'slow-2'].map((thread) => chatOf(thread)({ messages: [user('both slowly')] }))
  await expect.poll(() => stage.model.requests.filter(({ text }) => text.includes('both slowly')).length).toBe(2)
  const send = chatOf('withdrawn')
  const key = { 'idempotency-key': 'withdrawn-17' }
  const first = send({ messages: [user('hello')] }, key)
  await expect.poll(async () => (await stage.events(await idOf('withdrawn'), 'types=UserMessage')).length).toBe(1)
  const id = await idOf('withdrawn')
  const [{ id: messageId }] = await stage.events(id, 'types=UserMessage')
  expect((await server.call('DELETE', `/conversations/${id}/messages/${messageId}`)).status).toBe(200)
  expect((await first).body.error.code).toBe('message_not_found')
  for (const thread of ['slow-1', 'slow-2'])
    await server.call('POST', `/conversations/${await idOf(thread)}/pause`, { interrupt: true })
  await Promise.all(slow)
  const again = await send({ messages: [user('hello')] }, key)
  expect(again.body.choices[0].message.content).toBe('New: hello.')
})

test('a key that is limited to a conversation uses its thread, and no other', async () => {
  await chatOf('limited')({ messages: [user('first')] })
  const id = await idOf('limited')
  const fields = { name: 'a test', scopes: ['read', 'write'], conversations: [id] }
  const authorization = `Bearer ${(await server.call('POST', '/keys', fields)).body.key}`
  const messages = [user('first'), assistant('New: first.'), user('second')]
  const next = await chatOf('limited')({ messages }, { authorization })
  expect(next.body.choices[0].message.content).toBe('New: second.')
  for (const thread of ['other', 'exact', '']) {
    const { status, body } = await chatOf(thread)({ messages: [user('first')] }, { authorization })
    expect([thread, status, body.error.code]).toEqual([thread, 403, 'permission_denied'])
  }
})

test('functions of a response are answered with a message, and what is refused leaves no conversation', async () => {
  const tools = [{ type: 'function' as const, ...LOOK_UP.function, strict: false }]
  const create = { model: 'coder', tools, stream: false as const }
  const first = await openai.responses.create({ ...create, input: 'look up' })
  const call = first.output.find(({ type }) => type === 'function_call') as { call_id: string }
  const output = { type: 'function_call_output' as const, call_id: call.call_id, output: 'shipped' }
  const input = [output, { role: 'user' as const, content: 'thanks' }]
  const next = await openai.responses.create({ ...create, input, previous_response_id: first.id })
  expect(next.output_text).toMatch(/^New: shipped, .*thanks\.$/)
  const items = await Array.fromAsync(await openai.responses.inputItems.list(next.id))
  expect(items.map(({ type }) => type)).toEqual(['message', 'function_call_output'])
  const count = async () => (await server.call('GET', '/conversations/count')).body.count
  const before = await count()
  const wrong = [
    { text: { format: { type: 'grammar' } } },
    { text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object', $ref: '#/nowhere' } } } },
    { model: 'hooked', input: 'forbidden' },
    { input: [{ role: 'user', content: Array.from({ length: 1001 }, () => ({ type: 'input_text', text: 'x' })) }] },
  ]
  for (const more of wrong) {
    const { status, body } = await post('/responses', { model: 'coder', input: 'Hello', ...more })
    expect([more, status < 500, typeof body.error?.code]).toEqual([more, true, 'string'])
  }
  expect(await count()).toBe(before)
})

test('a response that is asked for again is the same one: new, continued or in a fork', async () => {
  const ask = async (more: object, headers: Record<string, string>) =>
    await post('/responses', { model: 'coder', ...more }, headers)
  const key = (name: string) => ({ 'idempotency-key': name })
  const first = await ask({ input: 'one' }, key('a'))
  expect((await ask({ input: 'one' }, key('a'))).body).toMatchObject({ id: first.body.id, output: first.body.output })
  expect((await ask({ input: 'another' }, key('a'))).status).toBe(422)
  const next = { input: 'two', previous_response_id: first.body.id }
  const second = await ask(next, key('b'))
  const retry = { 'x-stainless-retry-count': '1' }
  for (const headers of [key('b'), retry]) expect((await ask(next, headers)).body.id).toBe(second.body.id)
  const branch = { ...next, input: 'three' }
  const third = await ask(branch, key('c'))
  expect(third.body.id).not.toContain(first.body.id.slice(0, 37))
  expect((await ask(branch, key('c'))).body.id).toBe(third.body.id)
})

test('whatever is sent, no answer is a fault of the server, and each error has the form of OpenAI', async () => {
  const values: unknown[] = [
    null,
    true,
    0,
    -1,
    1e308,
    '',
    ' ',
    'x'.repeat(70_000),
    [],
    [[]],
    [null],
    {},
    { type: null },
  ]
  values.push(
    [{}],
    [{ type: 'text' }],
    [{ type: 'text', text: 7 }],
    [{ role: 'user' }],
    [{ role: 'tool', content: [] }],
  )
  values.push(JSON.parse('{"__proto__": {"a": 1}, "constructor": 1}'), [{ type: 'function', function: null }])
  const chat = { model: 'coder', messages: [user('x')] }
  const response = { model: 'coder', input: 'x' }
  const bodies: [string, unknown][] = ['', 'null', '[]', '{', '"x"', `{"model":${'['.repeat(5000)}`].flatMap((body) =>
    ['/chat/completions', '/responses'].map((path): [string, unknown] => [path, body]),
  )
  const hostileIds = ['resp_x', `resp_${'0'.repeat(32)}_1`, `call_${'0'.repeat(32)}_x`, `call_${'f'.repeat(31)}_\0`]
  for (const value of [...values, ...hostileIds]) {
    // None of them may begin a run: a temporary conversation for each would only cost time.
    for (const field of ['messages', 'tools', 'response_format', 'stream_options', 'metadata', 'model', 'tool_choice'])
      bodies.push(['/chat/completions', { ...chat, n: 2, [field]: value }])
    bodies.push(['/chat/completions', { ...chat, messages: value }])
    for (const part of ['content', 'tool_calls', 'tool_call_id', 'role'])
      for (const role of ['system', 'assistant', 'tool'])
        bodies.push(['/chat/completions', { model: 'coder', messages: [{ role, content: 'x', [part]: value }] }])
    for (const field of ['input', 'previous_response_id', 'tools', 'text', 'metadata', 'conversation', 'instructions'])
      bodies.push(['/responses', { ...response, model: 'none', [field]: value }])
    bodies.push(['/responses', { ...response, previous_response_id: value, input: value }])
  }
  const seen = new Set<number>()
  for (const [path, body] of bodies) {
    const { status, body: answer, text } = await post(path, body)
    const sent = JSON.stringify(body).slice(0, 200)
    seen.add(status)
    expect([sent, status < 500 ? 'fine' : text]).toEqual([sent, 'fine'])
    if (status >= 400)
      expect([sent, answer.error]).toEqual([
        sent,
        { message: expect.any(String), type: expect.any(String), code: expect.any(String), param: answer.error?.param },
      ])
  }
  expect([...seen]).toContain(400)
  for (const thread of ['../../etc', '%00', "'; DROP TABLE", 'a,b', 'ä', '😀'.repeat(3)].map((id) =>
    encodeURIComponent(id),
  ))
    expect((await chatOf(thread)({ messages: [user('x')], n: 2 })).status).toBe(400)
})

test('a repeated request whose conversation cannot be read deletes nothing', async () => {
  const ask = () =>
    post('/responses', { model: 'coder', input: 'hi' }, { 'idempotency-key': 'repeated-on-a-damaged-log' })
  expect(await ask()).toMatchObject({ status: 200 })
  const { id } = (await server.call('GET', '/conversations?limit=1')).body.items[0]
  await server.stop()
  const path = join(server.dataDir, 'sessions', id, 'events.jsonl')
  const [first, ...rest] = (await readFile(path, 'utf8')).split('\n')
  await writeFile(path, [first, 'damaged', ...rest].join('\n'))
  await server.restart()
  expect(await ask()).toMatchObject({ status: 409 })
  expect(await server.call('GET', `/conversations/${id}`)).toMatchObject({ status: 200 })
})

test('a tool and a schema that the server cannot use are refused by their names in the API of OpenAI', async () => {
  const messages = [{ role: 'user', content: 'Hello' }]
  const parameters = { type: 'object' }
  const bad = { name: 'bad', schema: { type: 'nope' } }
  const refused = async (path: string, body: object) => {
    const { status, body: answer } = await server.call('POST', path, { model: 'coder', ...body })
    return [status, answer.error.code, answer.error.param]
  }
  const chat = async (body: object) => await refused('/v1/chat/completions', { messages, ...body })
  const response = async (body: object) => await refused('/v1/responses', { input: 'Hello', ...body })
  const ofServer = { name: 'Bash', parameters }
  const isTool = [400, 'invalid_value', 'tools.0.name']
  expect(await chat({ tools: [{ type: 'function', function: ofServer }] })).toEqual(isTool)
  expect(await response({ tools: [{ type: 'function', ...ofServer }] })).toEqual(isTool)
  const format = { type: 'json_schema', json_schema: bad }
  expect(await chat({ response_format: format })).toEqual([400, 'invalid_value', 'response_format'])
  const text = { format: { type: 'json_schema', ...bad } }
  expect(await response({ text })).toEqual([400, 'invalid_value', 'text.format'])
})

test('a schema that is not an object is refused before it is read', async () => {
  for (const json_schema of ['x'.repeat(1_000_000), ['x'], 7]) {
    const response_format = { type: 'json_schema', json_schema }
    const answer = await post('/chat/completions', {
      model: 'coder',
      messages: [{ role: 'user', content: 'hi' }],
      response_format,
    })
    expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining('json_schema') } } })
  }
})
