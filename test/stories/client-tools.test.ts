/** Client tools over HTTP: a call waits for a client, and each call has exactly one result, whatever happens. */
import { afterAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { connect } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'
import { answer as answerRequest, requestsOf } from './requests.ts'

const LOOK_UP = {
  name: 'look_up_order',
  description: 'Returns an order by its number.',
  input_schema: { type: 'object', properties: { number: { type: 'string' } }, required: ['number'] },
}

const stage = await setStage(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

/** Calls the tool once for each word of the message that begins with #, and says what it read. */
function turnFor({ messages }: ScriptedQuestion['body']) {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `I read: ${said}` }
  const numbers = said.match(/#\w+/g) ?? []
  return { calls: numbers.map((number) => ({ name: 'look_up_order', arguments: { number } })) }
}

const call = (method: string, id: string, path = '', body?: unknown) =>
  server.call(method, `/conversations/${id}${path}`, body)
const statusOf = async (id: string): Promise<string> => (await call('GET', id)).body.status
const settled = (id: string, status: string) => expect.poll(() => statusOf(id)).toBe(status)
const waiting = (id: string) => requestsOf(server.call, id, 'client_tool')
const post = (id: string, content: string) =>
  call('POST', id, '/messages', { message: { role: 'user', content }, run: true })
const answer = (id: string, requestId: string, output: unknown, is_error = false) =>
  answerRequest(server.call, id, requestId, { kind: 'client_tool', output, is_error })
const results = (id: string) => stage.events(id, 'types=ToolResult')
/** A pause is answered after two seconds, also if a slow disk does not have the result yet. */
const hasResult = (id: string) => expect.poll(() => results(id)).toHaveLength(1)

const create = (tool: object = {}, fields: object = {}) =>
  stage.create({ tools: [], client_tools: [{ ...LOOK_UP, ...tool }], ...fields })

/** Lets the agent work until a call waits for a client. */
async function ask(text: string, tool: object = {}, fields: object = {}): Promise<{ id: string; requestId: string }> {
  const id = await create(tool, fields)
  await post(id, text)
  // Its deadline may have passed before the list was asked for.
  await expect.poll(async () => [...(await waiting(id)), ...(await results(id))]).toHaveLength(1)
  return { id, requestId: (await stage.events(id, 'types=RequestOpened'))[0].request_id }
}

test('a client follows the stream, executes the call and posts the result, which the model reads', async () => {
  const id = await create()
  const view = await call('GET', id)
  expect(view.body).toMatchObject({ tools: [], client_tools: [LOOK_UP] })
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?types=RequestOpened,Result`)
  await post(id, 'look up #17')
  const { data } = await stream.until(({ event }) => event === 'RequestOpened')
  expect(data).toMatchObject({
    kind: 'client_tool',
    payload: { name: 'look_up_order', input: { number: '#17' } },
    source: 'environment',
  })
  const { request_id, tool_use_ids, payload } = data
  const opened_at = expect.any(String)
  expect(await waiting(id)).toEqual([{ kind: 'client_tool', request_id, opened_at, tool_use_ids, payload }])
  const sent = { number: '#17', status: 'shipped' }
  expect(await answer(id, request_id, sent)).toMatchObject({ status: 200, body: { pending: 0 } })
  const { data: end } = await stream.until(({ event }) => event === 'Result')
  stream.close()
  expect(end.final_text).toBe(`I read: ${JSON.stringify(sent)}`)
  const shown = stage.model.requests.at(-1)!.body.tools as { function: object }[]
  expect(shown).toEqual([
    {
      type: 'function',
      function: { name: LOOK_UP.name, description: LOOK_UP.description, parameters: LOOK_UP.input_schema },
    },
  ])
  await settled(id, 'idle')
  const events = await stage.events(id)
  expect(events.slice(1).map(({ type }) => type)).toEqual([
    'UserMessage',
    'StatusUpdate',
    'AssistantMessage',
    'ToolUse',
    'RequestOpened',
    'RequestAnswered',
    'ToolResult',
    'AssistantMessage',
    'Result',
    'StatusUpdate',
  ])
  expect(await answer(id, request_id, { status: 'shipped', number: '#17' }), 'the same again').toMatchObject({
    status: 200,
  })
  for (const [output, isError] of [
    ['another', false],
    [sent, true],
  ] as const)
    expect(await answer(id, request_id, output, isError)).toMatchObject({
      status: 409,
      body: { error: 'already_answered' },
    })
  expect(await results(id)).toHaveLength(1)
})

describe('what is refused', () => {
  test('a request that is unknown, and a body that is not a result', async () => {
    const { id, requestId } = await ask('#1')
    expect(await answer(id, crypto.randomUUID(), 'x')).toMatchObject({
      status: 404,
      body: { error: 'request_not_found' },
    })
    for (const unknown of ['no-such-call', encodeURIComponent('../requests'), 'a'.repeat(1000)])
      expect(await answer(id, unknown, 'x')).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    const kind = 'client_tool'
    for (const body of [
      {},
      [],
      'x',
      { output: 1 },
      { kind },
      { kind, is_error: true },
      { kind, output: 1, error: 'x' },
      { kind, output: 1, is_error: 'no' },
    ])
      expect((await answerRequest(server.call, id, requestId, body)).status).toBe(400)
    expect(await waiting(id)).toHaveLength(1)
    expect(await answer(id, requestId, null)).toMatchObject({ status: 200 })
    await settled(id, 'idle')
    expect(await results(id)).toMatchObject([{ output: null, is_error: false }])
  })

  test('tools with a name of the server, a name twice, or a schema that models refuse', async () => {
    const deep = Array.from({ length: 30 }).reduce<object>((inner) => ({ items: inner }), {})
    for (const [tools, message] of [
      [[{ ...LOOK_UP, name: 'execute_bash' }], /client_tools\.0\.name: the server has a tool/],
      [[LOOK_UP, { ...LOOK_UP, name: 'ToolSearch' }], /client_tools\.1\.name/],
      [[{ ...LOOK_UP, name: 'mcp__a__b' }], /client_tools\.0\.name/],
      [[{ ...LOOK_UP, name: 'a b' }], /client_tools\.0\.name/],
      [[LOOK_UP, LOOK_UP], /two tools have the same name/],
      [[{ ...LOOK_UP, input_schema: { type: 'string' } }], /input_schema: must have the type object/],
      [[{ ...LOOK_UP, input_schema: { type: 'object', properties: { deep } } }], /more than 24 levels/],
      [[{ ...LOOK_UP, timeout: 0 }], /timeout/],
    ] as const) {
      const refused = await server.call('POST', '/conversations', { client_tools: tools, llm_config: { model: 'x' } })
      expect(refused).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } })
    }
    const secret = { secrets: { KEY: 'look_up_order' }, client_tools: [LOOK_UP], llm_config: { model: 'x' } }
    expect(await server.call('POST', '/conversations', secret)).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/client_tools\.0\.name: contains the value of a secret/) },
    })
  })

  test('a result from a key without the scope write', async () => {
    const { id, requestId } = await ask('#1')
    const { body: reader } = await server.call('POST', '/keys', { name: 'reader', scopes: ['read', 'approve'] })
    const headers = { authorization: `Bearer ${reader.key}` }
    const path = `/conversations/${id}/requests`
    const body = { kind: 'client_tool', output: 'x' }
    expect(await server.call('POST', `${path}/${requestId}`, body, headers)).toMatchObject({ status: 403 })
    expect((await server.call('GET', path, undefined, headers)).status).toBe(200)
    await answer(id, requestId, 'ok')
  })
})

describe('a call without an answer has one result nevertheless', () => {
  const ended = async (id: string, requestId: string, error_type: string, output: RegExp) => {
    expect(await results(id)).toMatchObject([{ is_error: true, error_type, output: expect.stringMatching(output) }])
    expect(await waiting(id)).toEqual([])
    expect(await answer(id, requestId, 'late')).toMatchObject({ status: 409, body: { error: 'request_closed' } })
    expect(await stage.events(id, 'types=RequestAnswered')).toEqual([])
  }

  test('after its deadline the model gets an error, and continues', async () => {
    const { id, requestId } = await ask('#1', { timeout: 0.5 })
    await settled(id, 'idle')
    await ended(id, requestId, 'timeout', /No client sent a result before the deadline/)
  })

  test('a pause leaves it waiting; a pause with interrupt ends it', async () => {
    const { id, requestId } = await ask('#1')
    await call('POST', id, '/pause')
    expect(await waiting(id)).toHaveLength(1)
    await call('POST', id, '/pause', { interrupt: true })
    await hasResult(id)
    await ended(id, requestId, 'interrupted', /interrupted/)
  })

  test('a result that comes during a pause counts, and the next run continues with it', async () => {
    const { id, requestId } = await ask('#1')
    await call('POST', id, '/pause')
    expect((await answer(id, requestId, 'sent while paused')).status).toBe(200)
    await call('POST', id, '/run', { wait: true, timeout: PATIENCE_S })
    expect(await results(id)).toMatchObject([{ output: 'sent while paused', is_error: false }])
  })

  test('a conversation that is deleted takes its calls with it', async () => {
    const { id, requestId } = await ask('#1')
    expect((await call('DELETE', id)).status).toBe(204)
    expect(await answer(id, requestId, 'late')).toMatchObject({ status: 410 })
  })
})

test('a call waits through a stop and a kill of the server, which its answer or its deadline ends', async () => {
  const resting = await ask('#1')
  // It leaves its run after five seconds.
  await settled(resting.id, 'waiting_for_client')
  const held = await ask('#2')
  let late = { id: '', requestId: '' }
  let stoppedAt = ''
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (signal === 'SIGKILL') late = await ask('#3', { timeout: 1 })
    await server.stop(signal)
    stoppedAt = new Date().toISOString()
    await server.restart()
    for (const { id, requestId } of [resting, held]) {
      expect((await call('GET', id)).body).toMatchObject({ status: 'waiting_for_client' })
      expect(await waiting(id)).toMatchObject([{ request_id: requestId }])
    }
  }
  expect((await call('POST', held.id, '/run', {})).body).toMatchObject({ error: 'waiting_for_client' })
  for (const { id, requestId } of [resting, held]) {
    expect((await answer(id, requestId, 'late, but read')).body).toMatchObject({ status: 'running' })
    await settled(id, 'idle')
    expect(await stage.events(id, 'types=Result')).toMatchObject([{ final_text: 'I read: late, but read' }])
  }
  // A deadline that passes while the server is stopped ends the call when it starts.
  await expect.poll(() => results(late.id)).toMatchObject([{ is_error: true, error_type: 'timeout' }])
  // On a slow machine it passes before the kill, which then cuts off the run.
  const isEarly = (await results(late.id))[0].timestamp < stoppedAt
  await expect.poll(() => statusOf(late.id)).toMatch(isEarly ? /idle|paused/ : /idle/)
  expect(await answer(late.id, late.requestId, 'late')).toMatchObject({ body: { error: 'request_closed' } })
})

test('the first of many results at the same time counts, and those like it are accepted', async () => {
  const { id, requestId } = await ask('#1')
  const sent = await Promise.all(Array.from({ length: 12 }, (_, n) => answer(id, requestId, `result ${n % 3}`)))
  await settled(id, 'idle')
  const [stored] = await stage.events(id, 'types=RequestAnswered')
  const { output } = stored.answer
  expect(sent.map(({ status }) => status)).toEqual(sent.map((_, n) => (`result ${n % 3}` === output ? 200 : 409)))
  expect(await results(id)).toMatchObject([{ output }])
})

test('calls of one turn are handed over one after the other, and the model reads that one has failed', async () => {
  const { id } = await ask('#1 #2')
  for (const [output, isError] of [
    [[{ type: 'text', text: 'one' }], false],
    ['no such order', true],
  ] as const) {
    await expect.poll(() => waiting(id)).toHaveLength(1)
    expect((await answer(id, (await waiting(id))[0].request_id, output, isError)).status).toBe(200)
  }
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([
    { output: [{ type: 'text', text: 'one' }], is_error: false },
    { output: 'no such order', is_error: true, error_type: 'failed', error_message: 'no such order' },
  ])
})

test('approvals, hooks and redaction apply as to any tool, and a client is asked only for what is allowed', async () => {
  const note = { type: 'command', command: 'echo checked >&2; exit 2' }
  const { body } = await server.call('POST', '/conversations', {
    llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' },
    tools: [],
    client_tools: [LOOK_UP],
    permission_mode: 'default',
    secrets: { TOKEN: 'hidden-value-4711' },
    hooks: { PostToolUse: [{ matcher: 'look_up_order', hooks: [note] }] },
  })
  const id: string = body.id
  await post(id, '#1')
  await settled(id, 'waiting_for_confirmation')
  expect(await waiting(id)).toEqual([])
  const [request] = await requestsOf(server.call, id, 'permission')
  const [use] = request.payload.tool_uses
  const decisions = [{ ...pick(use), behavior: 'allow', updated_input: { number: '#2' } }]
  await answerRequest(server.call, id, request.request_id, { kind: 'permission', decisions })
  await expect.poll(() => waiting(id)).toMatchObject([{ payload: { input: { number: '#2' } } }])
  const [{ request_id, tool_use_ids }] = await waiting(id)
  expect(tool_use_ids).toEqual([use.tool_use_id])
  await answer(id, request_id, { token: 'hidden-value-4711' })
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([
    { output: { token: '<secret:TOKEN>' }, ran_input: { number: '#2' }, context: expect.stringContaining('checked') },
  ])
  expect(JSON.stringify(await stage.events(id))).not.toContain('hidden-value-4711')
})

const pick = ({ tool_use_id, input_hash }: { tool_use_id: string; input_hash: string }) => ({ tool_use_id, input_hash })

test('the configuration replaces the tools from the next request on, and a socket sends results too', async () => {
  const id = await create()
  const other = { name: 'other', description: 'Another.', input_schema: { type: 'object' } }
  expect((await call('PUT', id, '/config', { client_tools: [other] })).body.client_tools).toEqual([other])
  await post(id, 'look up #17')
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([{ error_type: 'unknown_tool' }])
  await call('PUT', id, '/config', { client_tools: [LOOK_UP] })
  await post(id, 'look up #18')
  await expect.poll(() => waiting(id)).toHaveLength(1)
  const [{ request_id }] = await waiting(id)
  const socket = await connect(server.url, `/conversations/${id}/ws`)
  socket.say({ type: 'answer', id: 'r', request_id, answer: { kind: 'client_tool', output: 'by socket' } })
  expect(await socket.until((frame) => frame.type === 'ack')).toMatchObject({
    of: 'answer',
    result: { pending: 0 },
  })
  socket.close()
  await settled(id, 'idle')
  expect((await results(id)).at(-1)).toMatchObject({ output: 'by socket' })
})

test('a long result is stored whole, and the model reads its beginning and end', async () => {
  const { id, requestId } = await ask('#1')
  const output = `begin ${'x'.repeat(300_000)} end`
  await answer(id, requestId, output)
  await settled(id, 'idle')
  expect((await stage.events(id, 'types=RequestAnswered'))[0].answer.output).toBe(output)
  const [result] = await results(id)
  expect(result).toMatchObject({
    truncated: true,
    output: expect.stringMatching(/^begin x+\n\[… 200010 .*\]\nx+ end$/),
  })
})
