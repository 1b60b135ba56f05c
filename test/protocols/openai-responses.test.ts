/** The Responses API, as the client of OpenAI uses it, on a real server. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import type { Response, ResponseInput, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { ASKS } from '../support/asked-question.ts'
import { KEY } from '../support/server.ts'
import { setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

/** What is said `when allowed` is answered afterwards. */
const allowed = Promise.withResolvers<void>()
const stage = await setStage(async ({ body, text }) => {
  if (text.includes('when allowed')) await allowed.promise
  return turnFor(body)
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)

/** What the scripted model does with the last message of the user, or with the result of its call. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 200)}` }
  if (said.includes('touch'))
    return {
      text: 'Now.',
      calls: [{ name: 'Bash', arguments: { command: said.replaceAll(/.*(touch \w+).*/gs, '$1') } }],
    }
  if (said.includes('which one')) return ASKS
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('endless')) return { text: 'one '.repeat(300), chunk_delay_ms: 500 }
  if (said.includes('slowly'))
    return { reasoning: 'Let me think.', text: 'one two three four five six', chunk_delay_ms: 60 }
  if (said.includes('how many'))
    return { text: `${messages.filter(({ content }) => content === 'how many').length} messages` }
  if (said.includes('JSON')) return { text: '{"count": 17}' }
  if (said.includes('fail')) return { status: 400, error: { message: 'no such thing' } }
  return { reasoning: 'A greeting.', text: 'Hello there.' }
}

const LOOK_UP = {
  type: 'function',
  name: 'look_up',
  strict: false,
  parameters: { type: 'object', properties: {} },
} as const
const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'https://agent-server.invalid' } as const

beforeAll(async () => {
  const { status } = await server.call('PUT', '/profiles/coder', { tools: ['Bash'], llm_config: LLM })
  expect(status).toBe(201)
  await server.call('PUT', '/profiles/free', { tools: ['Bash'], permission_mode: 'bypass', llm_config: LLM })
})

const ask = (input: string, more: object = {}) => openai.responses.create({ model: 'coder', input, ...more })
const conversationOf = ({ id }: Pick<Response, 'id'>) =>
  id.slice(5, 37).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

async function workdirOf(response: Response): Promise<string> {
  return (await server.call('GET', `/conversations/${conversationOf(response)}`)).body.workdir
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

async function all(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

const finalOf = (events: readonly ResponseStreamEvent[]): Response => {
  const last = events.at(-1)!
  if (!('response' in last)) throw new Error(`the stream ended with ${last.type}`)
  return last.response
}

test('profiles are models, and one that does not exist is 404 in the form of OpenAI', async () => {
  const models = await Array.fromAsync(await openai.models.list())
  expect(models.map(({ id }) => id)).toEqual(['coder', 'free'])
  expect(await openai.models.retrieve('coder')).toMatchObject({ object: 'model', owned_by: 'agent-server' })
  await expect(openai.responses.create({ model: 'gpt-5', input: 'Hello' })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
    type: 'invalid_request_error',
  })
  await expect(clientWith('wrong').models.list()).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' })
})

test('a response has the reasoning and the text of the agent, and can be read again', async () => {
  const response = await ask('Hello', { metadata: { ticket: '17' }, instructions: 'Be kind.', unknown_field: 1 })
  expect(response).toMatchObject({ status: 'completed', output_text: 'Hello there.', model: 'coder', error: null })
  expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
  expect(response.usage!.total_tokens).toBeGreaterThan(0)
  const { output_text: _, ...again } = await openai.responses.retrieve(response.id)
  expect(again.output).toEqual(response.output)
  expect(again).toMatchObject({ status: 'completed', usage: response.usage })
  expect(again.metadata).toMatchObject({ ticket: '17' })
  const items = await Array.fromAsync(await openai.responses.inputItems.list(response.id))
  expect(items).toMatchObject([{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }])
  expect(stage.model.requests.at(-1)!.text).toContain('Be kind.')
})

test('the latest response is continued, and an earlier one forks at its turn', async () => {
  const first = await ask('how many')
  const second = await ask('how many', { previous_response_id: first.id })
  expect([first.output_text, second.output_text]).toEqual(['1 messages', '2 messages'])
  expect(conversationOf(second)).toBe(conversationOf(first))
  const other = await ask('how many', { previous_response_id: first.id })
  expect(other.output_text).toBe('2 messages')
  expect(conversationOf(other)).not.toBe(conversationOf(first))
  expect((await openai.responses.retrieve(second.id)).output_text).toBe('2 messages')
  await expect(ask('Hello', { previous_response_id: 'resp_gone' })).rejects.toMatchObject({
    status: 404,
    code: 'previous_response_not_found',
  })
})

test('after a restart a stream is continued exactly after any of its events, and a call can be approved', async () => {
  const isTextDelta = ({ type }: ResponseStreamEvent) => type === 'response.output_text.delta'
  // What comes to a busy server at once is one piece.
  const events = await until('a stream in pieces', async () => {
    const seen = await all(await openai.responses.create({ model: 'coder', input: 'slowly', stream: true }))
    return seen.filter(isTextDelta).length > 2 && seen
  })
  const final = finalOf(events)
  expect(final).toMatchObject({ status: 'completed', output: [{ type: 'reasoning' }, { type: 'message' }] })
  const numbers = events.map(({ sequence_number }) => sequence_number)
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
  const deltas = (some: readonly ResponseStreamEvent[]) =>
    some.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
  expect(deltas(events)).toBe('one two three four five six')

  const pending = await ask('touch later', { tools: [APPROVES] })
  await server.restart()
  const isShape = ({ type }: ResponseStreamEvent) => !type.endsWith('.delta')
  for (const at of [-1, 0, 3, Math.floor(events.length / 2), events.length - 2]) {
    const after = events[at]?.sequence_number ?? -1
    const rest = await all(await openai.responses.retrieve(final.id, { stream: true, starting_after: after }))
    expect(rest.every(({ sequence_number }) => sequence_number > after)).toBe(true)
    expect(deltas(events.slice(0, at + 1)) + deltas(rest)).toBe(deltas(events))
    expect([...events.slice(0, at + 1), ...rest].filter(isShape).map(({ type }) => type)).toEqual(
      events.filter(isShape).map(({ type }) => type),
    )
    expect(finalOf(rest).output).toEqual(final.output)
  }
  expect((await ask('Hello', { previous_response_id: final.id })).output_text).toBe('Hello there.')

  const { id } = pending.output.find((item) => item.type === 'mcp_approval_request')!
  const approval = { type: 'mcp_approval_response', approval_request_id: id, approve: true } as const
  const approved = await openai.responses.create({
    model: 'coder',
    input: [approval],
    previous_response_id: pending.id,
  })
  expect(approved.output).toMatchObject([{ type: 'mcp_call', status: 'completed' }, { type: 'message' }])
})

test('a lost connection does not stop the agent', async () => {
  const stream = await openai.responses.create({ model: 'coder', input: 'slowly', stream: true })
  let id = ''
  for await (const event of stream) {
    if (event.type === 'response.created') id = event.response.id
    if (event.type === 'response.output_text.delta') break
  }
  const rest = openai.responses.stream({ response_id: id, starting_after: 1 })
  expect((await rest.finalResponse()).output_text).toBe('one two three four five six')
})

test('in the background it is in progress at first, and can be cancelled', async () => {
  const begun = await ask('endless', { background: true })
  expect(begun).toMatchObject({ status: 'in_progress', background: true, output: [] })
  await expect(ask('Hello', { previous_response_id: begun.id })).rejects.toMatchObject({
    status: 409,
    code: 'conversation_running',
  })
  const cancelled = await openai.responses.cancel(begun.id)
  expect(cancelled).toMatchObject({ status: 'cancelled' })
  expect((await ask('Hello', { previous_response_id: begun.id })).status).toBe('completed')

  const other = await ask('Hello', { background: true })
  await expect.poll(async () => (await openai.responses.retrieve(other.id)).status).toBe('completed')
})

test('tools of the server are calls of an MCP server, and never functions', async () => {
  const response = await ask('touch made', { model: 'free' })
  expect(response.output).toMatchObject([
    { type: 'message' },
    {
      type: 'mcp_call',
      server_label: 'agent-server',
      name: 'Bash',
      arguments: '{"command":"touch made"}',
      status: 'completed',
    },
    { type: 'message' },
  ])
  expect(await exists(join(await workdirOf(response), 'made'))).toBe(true)
})

test('a call waits for its approval, runs once, and an answer that is sent again runs nothing', async () => {
  const asked = await ask('touch once', { tools: [APPROVES] })
  expect(asked.status).toBe('completed')
  const request = asked.output.find((item) => item.type === 'mcp_approval_request')!
  expect(request).toMatchObject({ name: 'Bash', server_label: 'agent-server', arguments: '{"command":"touch once"}' })
  const workdir = await workdirOf(asked)
  await expect(ask('Go on', { previous_response_id: asked.id })).rejects.toMatchObject({ status: 409 })
  expect(await exists(join(workdir, 'once'))).toBe(false)

  const approval = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true } as const
  const answer = { model: 'coder', input: [approval], tools: [APPROVES], previous_response_id: asked.id }
  const response = await openai.responses.create(answer)
  expect(response.output).toMatchObject([
    { type: 'mcp_call', approval_request_id: request.id, status: 'completed' },
    { type: 'message' },
  ])
  expect(await exists(join(workdir, 'once'))).toBe(true)
  await expect(openai.responses.create(answer)).rejects.toMatchObject({ status: 400 })
  expect((await openai.responses.retrieve(response.id)).output).toEqual(response.output)
})

test('an approval that comes with a message runs the call once, and the agent reads the message', async () => {
  const asked = await ask('touch both', { tools: [APPROVES] })
  const { id } = asked.output.find((item) => item.type === 'mcp_approval_request')!
  const approval = { type: 'mcp_approval_response', approval_request_id: id, approve: true } as const
  const message = { role: 'user', content: 'Be quick.' } as const
  const response = await openai.responses.create({
    model: 'coder',
    input: [approval, message],
    tools: [APPROVES],
    previous_response_id: asked.id,
  })
  expect(response.output).toContainEqual(expect.objectContaining({ type: 'mcp_call', status: 'completed' }))
  expect(await exists(join(await workdirOf(asked), 'both'))).toBe(true)
  expect(stage.model.requests.some(({ text }) => text.includes('Be quick.'))).toBe(true)
})

test('without the label of the server a message says what waits, and a refusal reaches the agent', async () => {
  const asked = await ask('touch never')
  expect(asked.output.map(({ type }) => type)).toEqual(['message', 'message'])
  expect(asked.output_text).toContain('touch never')

  const other = await ask('touch never', { tools: [APPROVES] })
  const { id } = other.output.find((item) => item.type === 'mcp_approval_request')!
  const denied = await openai.responses.create({
    model: 'coder',
    previous_response_id: other.id,
    input: [{ type: 'mcp_approval_response', approval_request_id: id, approve: false, reason: 'Not today.' }],
  })
  expect(denied.output_text).toContain('Not today.')
  expect(await exists(join(await workdirOf(other), 'never'))).toBe(false)
})

test('a decision needs the scope approve, and a key sees its own conversations', async () => {
  const keyFor = async (fields: object) =>
    clientWith((await server.call('POST', '/keys', { name: 'a test', scopes: ['read', 'write'], ...fields })).body.key)
  const narrow = await keyFor({ profiles: ['coder'], user_id: 'user-17' })
  expect((await Array.fromAsync(await narrow.models.list())).map(({ id }) => id)).toEqual(['coder'])
  await expect(narrow.responses.create({ model: 'free', input: 'Hello' })).rejects.toMatchObject({ status: 404 })
  const asked = await narrow.responses.create({
    model: 'coder',
    input: 'touch mine',
    instructions: 'x',
    tools: [APPROVES],
  })
  const { id } = asked.output.find((item) => item.type === 'mcp_approval_request')!
  const approval = { type: 'mcp_approval_response', approval_request_id: id, approve: true } as const
  await expect(
    narrow.responses.create({ model: 'coder', previous_response_id: asked.id, input: [approval], tools: [APPROVES] }),
  ).rejects.toMatchObject({ status: 403, code: 'permission_denied' })
  expect(await exists(join(await workdirOf(asked), 'mine'))).toBe(false)
  const stranger = await keyFor({ user_id: 'user-18' })
  await expect(stranger.responses.retrieve(asked.id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
  await expect(stranger.responses.cancel(asked.id)).rejects.toMatchObject({ status: 404 })
  // What a redactor hides would say what the secrets of the conversation are.
  const conversationId = asked.id.slice('resp_'.length).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
  const { status } = await server.call('PUT', `/conversations/${conversationId}/secrets`, {
    secrets: { PIN: '123456789012' },
  })
  expect(status).toBe(200)
  const guess = `${asked.id.replace(/_\d+[abs]*$/, '')}_123456789012`
  await expect(stranger.responses.retrieve(guess)).rejects.toThrow('123456789012')
  const reader = await keyFor({ scopes: ['read'] })
  await expect(reader.responses.create({ model: 'coder', input: 'Hello' })).rejects.toMatchObject({ status: 403 })
})

test('a function of the client is called by the client', async () => {
  const asked = await ask('look up', { tools: [LOOK_UP] })
  const call = asked.output.find((item) => item.type === 'function_call')!
  expect(call).toMatchObject({ name: 'look_up', arguments: '{"number":"17"}', status: 'completed' })
  await expect(ask('Hello', { previous_response_id: asked.id, tools: [LOOK_UP] })).rejects.toThrow(
    `No tool output found for function call ${call.call_id}.`,
  )
  const response = await openai.responses.create({
    model: 'coder',
    previous_response_id: asked.id,
    tools: [LOOK_UP],
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'shipped' }],
  })
  expect(response.output.map(({ type }) => type)).toEqual(['message'])
  expect(response.output_text).toContain('shipped')
  expect((await openai.responses.retrieve(asked.id)).output).toEqual(asked.output)
  const items = await Array.fromAsync(await openai.responses.inputItems.list(response.id))
  expect(items).toMatchObject([{ type: 'function_call_output', call_id: call.call_id, output: 'shipped' }])
})

test('a client that sends all items each time continues by the calls that it answers, and earlier ones are history', async () => {
  const user = { role: 'user', content: 'look up' } as const
  const asked = await ask('look up', { tools: [LOOK_UP] })
  const call = asked.output.find((item) => item.type === 'function_call')!
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'shipped' } as const
  const items = [user, ...asked.output, output]
  const answer = await openai.responses.create({ model: 'coder', tools: [LOOK_UP], input: items as ResponseInput })
  expect(answer.output_text).toContain('shipped')
  expect(conversationOf(answer)).toBe(conversationOf(asked))
  const later = [...items, ...answer.output, { role: 'user', content: 'Hello' }]
  const next = await openai.responses.create({ model: 'coder', tools: [LOOK_UP], input: later as ResponseInput })
  expect(next.status).toBe('completed')
  expect(stage.model.requests.at(-1)!.text).toMatch(/user: look up.*assistant: Read: shipped.*user: Hello/s)

  const waiting = await ask('touch whole', { tools: [APPROVES] })
  const { id } = waiting.output.find((item) => item.type === 'mcp_approval_request')!
  const approval = { type: 'mcp_approval_response', approval_request_id: id, approve: true } as const
  const approvals = [{ role: 'user', content: 'touch whole' }, ...waiting.output, approval]
  const approved = await openai.responses.create({
    model: 'coder',
    tools: [APPROVES],
    input: approvals as ResponseInput,
  })
  expect(approved.output).toMatchObject([{ type: 'mcp_call', status: 'completed' }, { type: 'message' }])
  expect(await exists(join(await workdirOf(waiting), 'whole'))).toBe(true)

  // Nobody answers for another user, or by another model.
  const other = await ask('look up', { tools: [LOOK_UP] })
  const { call_id } = other.output.find((item) => item.type === 'function_call')!
  const stolen = [{ type: 'function_call_output' as const, call_id, output: 'mine' }]
  const fields = { name: 'a test', scopes: ['read', 'write'], user_id: 'user-19' }
  const stranger = clientWith((await server.call('POST', '/keys', fields)).body.key)
  for (const [client, model] of [[stranger, 'coder'] as const, [openai, 'free'] as const])
    await expect(client.responses.create({ model, input: stolen })).rejects.toThrow(/no conversation waits for/)
})

test('an id that names another conversation answers nothing, though calls of both have the same number', async () => {
  const [one, other] = [await ask('look up', { tools: [LOOK_UP] }), await ask('look up', { tools: [LOOK_UP] })]
  const [call, same] = [one, other].map(({ output }) => output.find((item) => item.type === 'function_call')!)
  expect(same!.call_id.split('_').slice(2)).toEqual(call!.call_id.split('_').slice(2))
  const output = { type: 'function_call_output', call_id: same!.call_id, output: 'of the other one' } as const
  const own = { ...output, call_id: call!.call_id, output: 'its own' }
  for (const input of [[output], [own, output]])
    await expect(
      openai.responses.create({ model: 'coder', previous_response_id: one.id, tools: [LOOK_UP], input }),
    ).rejects.toMatchObject({ status: 400 })
  const [waiting, second] = [
    await ask('touch mine', { tools: [APPROVES] }),
    await ask('touch mine', { tools: [APPROVES] }),
  ]
  const [request, elsewhere] = [waiting, second].map(({ output: all }) =>
    all.find((item) => item.type === 'mcp_approval_request')!,
  )
  // The conversation of the second one, and the request of the first one.
  const mixed = [...elsewhere!.id.split('_').slice(0, 2), ...request!.id.split('_').slice(2)].join('_')
  const approval = { type: 'mcp_approval_response', approval_request_id: mixed, approve: true } as const
  await expect(
    openai.responses.create({ model: 'coder', previous_response_id: waiting.id, input: [approval] }),
  ).rejects.toMatchObject({ status: 409, code: 'waiting_for_decision' })
  for (const { id } of [one, waiting]) {
    const path = `/conversations/${conversationOf({ id })}/events?types=RequestAnswered,RequestClosed`
    expect((await server.call('GET', path)).body.items).toEqual([])
  }
  expect(await exists(join(await workdirOf(waiting), 'mine'))).toBe(false)
})

test('a question is a message, and the next text closes it once, also if the client repeats it', async () => {
  await server.call('PUT', '/profiles/asking', { tools: ['AskUserQuestion'], llm_config: LLM })
  const conversation = await openai.conversations.create({ model: 'asking' } as object)
  const named = { model: 'asking', conversation: conversation.id }
  for (const place of [{ model: 'asking' }, named]) {
    const asked = await ask('which one', place)
    expect(asked.output_text).toMatch(/Which database\?\n1\. SQLite/)
    const again = place === named ? named : { ...place, previous_response_id: asked.id }
    const headers = { 'Idempotency-Key': `answer-to-${asked.id}` }
    const answer = () => openai.responses.create({ input: 'SQLite', ...again }, { headers })
    const first = await answer()
    expect(first.output_text).toBe('Hello there.')
    expect(await answer()).toEqual(first)
    const types = 'UserMessage,RequestAnswered,RequestClosed'
    const { items } = (await server.call('GET', `/conversations/${conversationOf(asked)}/events?types=${types}`)).body
    const asMessage = { type: 'UserMessage' }
    expect(items).toMatchObject([asMessage, { type: 'RequestClosed', reason: 'message' }, asMessage])
  }
})

test('a failed run is a failed response', async () => {
  const response = await ask('fail')
  expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
  expect(response.error!.message).toContain('no such thing')
})

test('an output schema gives JSON that fits it', async () => {
  const schema = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] }
  const response = await ask('as JSON', { text: { format: { type: 'json_schema', name: 'counted', schema } } })
  expect(JSON.parse(response.output_text)).toEqual({ count: 17 })
})

test('what would change the meaning is refused by name', async () => {
  const image = { type: 'input_image', detail: 'auto', image_url: 'https://example.com/cat.png' } as const
  const refused = openai.responses.create({ model: 'coder', input: [{ role: 'user', content: [image] }] })
  await expect(refused).rejects.toMatchObject({ status: 400, param: 'image_url' })
  await expect(ask('  ')).rejects.toMatchObject({ status: 400 })
  const begun = await ask('Hello')
  for (const name of ['Bash', 'execute_bash', 'mcp__a__b', 'not a name', ''])
    for (const previous of [{}, { previous_response_id: begun.id }])
      await expect(ask('Hello', { tools: [{ ...LOOK_UP, name }], ...previous })).rejects.toMatchObject({ status: 400 })
  await expect(ask('Hello', { metadata: { long: 'x'.repeat(70_000) } })).rejects.toMatchObject({ status: 400 })
  const forced = { type: 'function', name: 'look_up' } as const
  for (const previous of [{}, { previous_response_id: begun.id }]) {
    const tool = ask('Hello', { tools: [LOOK_UP], tool_choice: forced, ...previous })
    await expect(tool).rejects.toMatchObject({ status: 400, param: 'tool_choice' })
    const template = ask('Hello', { prompt: { id: 'pmpt_1' }, ...previous })
    await expect(template).rejects.toMatchObject({ status: 400, param: 'prompt' })
  }
})

test('the choice of tools holds for the first answer of the model', async () => {
  const begun = await ask('Hello', { tool_choice: 'required' })
  expect(stage.model.requests.at(-1)!.body).toMatchObject({ tool_choice: 'required' })
  expect(begun.tool_choice).toBe('required')
  await ask('Hello', { tool_choice: 'none', previous_response_id: begun.id })
  expect(stage.model.requests.at(-1)!.body).toMatchObject({ tool_choice: 'none' })
  await ask('Hello', { tool_choice: 'auto', previous_response_id: begun.id })
  expect(stage.model.requests.at(-1)!.body['tool_choice']).not.toBe('required')
})

test('a response that is not stored, or is deleted, is gone', async () => {
  const unstored = await ask('Hello', { store: false })
  expect(unstored.output_text).toBe('Hello there.')
  await expect(openai.responses.retrieve(unstored.id)).rejects.toMatchObject({ status: 404 })
  const [first, second] = await (async () => {
    const one = await ask('Hello')
    return [one, await ask('Hello', { previous_response_id: one.id })]
  })()
  await expect(openai.responses.delete(first.id)).rejects.toMatchObject({ status: 409 })
  await openai.responses.delete(second.id)
  await expect(openai.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
})

test('nothing is left of a client that sends all items each time, and wants nothing stored', async () => {
  const { count: before } = (await server.call('GET', '/conversations/count')).body
  const asked = await ask('look up', { tools: [LOOK_UP], store: false })
  const call = asked.output.find((item) => item.type === 'function_call')!
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'shipped' } as const
  const input = [{ role: 'user', content: 'look up' } as const, call, output]
  const wrong = [...input.slice(0, -1), { ...output, call_id: `${call.call_id}-other` }]
  const request = { model: 'coder', tools: [LOOK_UP], store: false }
  await expect(openai.responses.create({ ...request, input: wrong })).rejects.toThrow(/does not wait|No tool output/)
  const { output_text: text } = await openai.responses.create({ ...request, input })
  expect(text).toContain('shipped')
  await expect.poll(async () => (await server.call('GET', '/conversations/count')).body.count).toBe(before)
})

test('a fork that is not to be stored is deleted with its answer, and the original stays', async () => {
  const first = await ask('Hello')
  await ask('Hello', { previous_response_id: first.id })
  const { count: before } = (await server.call('GET', '/conversations/count')).body
  const fork = await ask('Hello', { previous_response_id: first.id, store: false })
  expect(conversationOf(fork)).not.toBe(conversationOf(first))
  await expect(openai.responses.retrieve(fork.id)).rejects.toMatchObject({ status: 404 })
  expect((await server.call('GET', '/conversations/count')).body.count).toBe(before)
  expect((await openai.responses.retrieve(first.id)).output_text).toBe('Hello there.')
})

test('what is not to be stored is deleted after a lost connection, too', async () => {
  const list = async () => (await server.call('GET', '/conversations?limit=1000')).body.items as { id: string }[]
  const before = (await list()).length
  const stream = await openai.responses.create({
    model: 'coder',
    input: 'Write when allowed',
    stream: true,
    store: false,
  })
  for await (const event of stream) if (event.type === 'response.created') break
  expect(await list()).toHaveLength(before + 1)
  allowed.resolve()
  const isGone = async () => (await list()).length === before
  await until('the conversation to be deleted', isGone)
})

test('what is not to be stored stays if another client has continued it meanwhile', async () => {
  const stream = await openai.responses.create({ model: 'coder', input: 'endless', stream: true, store: false })
  let id = ''
  for await (const event of stream) {
    if (event.type === 'response.created') id = conversationOf(event.response)
    if (event.type !== 'response.output_text.delta') continue
    const said = await server.call('POST', `/conversations/${id}/messages`, { message: 'Hello', run: true })
    expect(said.status).toBe(202)
    break
  }
  await server.call('POST', `/conversations/${id}/pause`, { interrupt: true })
  expect((await server.call('POST', `/conversations/${id}/run`, { wait: true })).status).toBe(200)
  expect((await stage.events(id, 'types=UserMessage')).length).toBe(2)
  // The deletion follows the end of the response.
  const later = await openai.responses.create({ model: 'coder', input: 'Hello', store: false })
  await expect(openai.responses.retrieve(later.id)).rejects.toMatchObject({ status: 404 })
  expect((await server.call('GET', `/conversations/${id}`)).status).toBe(200)
})

test('audit lines name the conversation that was made, continued, cancelled or deleted', async () => {
  const first = await ask('Hello')
  const second = await ask('Hello', { previous_response_id: first.id })
  await openai.responses.cancel(second.id)
  await openai.responses.delete(second.id)
  const lines = server
    .output()
    .split('\n')
    .filter(
      (line) => line.includes('"audit"') && line.includes('/v1/responses') && line.includes(conversationOf(first)),
    )
  expect(lines.map((line) => (JSON.parse(line) as { method: string }).method)).toEqual([
    'POST',
    'POST',
    'POST',
    'DELETE',
  ])
})

test('an error shows no secret of the conversation', async () => {
  const secrets = { TOKEN: 'the-value-of-a-token' }
  await server.call('PUT', '/profiles/telling', { llm_config: LLM, secrets })
  const one = await ask('Hello', { model: 'telling' })
  const asked = {
    previous_response_id: one.id,
    input: [{ type: 'function_call_output', call_id: secrets.TOKEN, output: '' }],
  }
  const refused = await openai.responses
    .create({ model: 'telling', ...asked } as never)
    .catch((error: unknown) => error)
  expect(refused).toMatchObject({ status: 400 })
  expect(String(refused)).toContain('does not wait')
  expect(String(refused)).not.toContain(secrets.TOKEN)
})

test('an id that begins with another event is not found, and a refused request leaves no fork', async () => {
  const first = await ask('Hello')
  await ask('Hello again', { previous_response_id: first.id })
  const forged = first.id.replace(/_\d+/, '_1')
  await expect(openai.responses.retrieve(forged)).rejects.toMatchObject({ status: 404 })
  const count = async () => (await server.call('GET', '/conversations/count')).body.count
  const before = await count()
  await expect(ask('', { previous_response_id: first.id })).rejects.toMatchObject({ status: 400 })
  expect(await count()).toBe(before)
})

test('a stream is one of those of its conversation', async () => {
  const background = await ask('endless', { background: true })
  const path = `/conversations/${conversationOf(background)}/events/stream`
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${KEY}` }
  const others = Array.from({ length: 500 }, () => fetch(server.url + path, { headers, signal: stop.signal }))
  expect(new Set((await Promise.all(others)).map(({ status }) => status))).toEqual(new Set([200]))
  await expect(openai.responses.retrieve(background.id, { stream: true })).rejects.toMatchObject({ status: 429 })
  stop.abort()
  await openai.responses.cancel(background.id)
})
