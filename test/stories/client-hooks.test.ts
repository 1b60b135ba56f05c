/** Hooks that clients answer over HTTP: asked, asked again, answered once, and without an answer a failure like any other. */
import { afterAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { longEnough } from '../support/long-enough.ts'
import { connect } from '../support/socket.ts'
import type { Frame, Subscriber } from '../support/stream.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { answer as answerRequest } from './requests.ts'

const stage = await setStage(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

/** `run WORD…` runs a command for each word; `delegate WORD` has a subagent do it; the rest is answered. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `I read: ${said}` }
  const [verb, ...words] = said.split(' ')
  if (verb === 'run') return { calls: words.map((word) => ({ name: 'Bash', arguments: { command: `echo ${word}` } })) }
  if (verb !== 'delegate') return { text: said }
  const input = { description: 'one', prompt: `run ${words.join(' ')}`, subagent_type: 'general-purpose' }
  return { calls: [{ name: 'Task', arguments: input }] }
}

const call = (method: string, id: string, path = '', body?: unknown, headers?: Record<string, string>) =>
  server.call(method, `/conversations/${id}${path}`, body, headers)
const register = (id: string, hooks: object, client = 'policy') => call('PUT', id, `/client-hooks/${client}`, { hooks })
const answer = (id: string, request: string, body: object) =>
  answerRequest(server.call, id, request, { kind: 'hook', ...body })
/** As the client sees them, with their input. */
// oxlint-disable-next-line typescript/no-explicit-any -- as HTTP returns them
const waiting = async (id: string, query = 'client=policy'): Promise<any[]> =>
  (await call('GET', id, `/requests?kinds=hook&${query}`)).body.items
const post = (id: string, content: string) =>
  call('POST', id, '/messages', { message: { role: 'user', content }, run: true })
const settled = (id: string, status = 'idle') =>
  expect.poll(async () => (await call('GET', id)).body.status).toBe(status)
const results = (id: string) => stage.events(id, 'types=ToolResult')
const listen = (id: string, client = 'policy') =>
  subscribe(server.url, `/conversations/${id}/events/stream?types=Result&hook_client=${client}`)
const pre = (hook: object = {}) => ({ PreToolUse: [{ matcher: 'Bash', hooks: [{ id: 'guard', ...hook }] }] })
const decide = (permissionDecision: string, more: object = {}) => ({
  output: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...more } },
})

async function create(hooks: object = pre(), fields: object = {}) {
  const id = await stage.create({ tools: ['Bash', 'Task'], ...fields })
  const { status, body } = await register(id, hooks)
  expect([status, JSON.stringify(body)]).toMatchObject([200, expect.any(String)])
  return id
}

/** Lets the agent work until this many hooks wait. */
async function ask(text: string, hooks: object = pre(), fields: object = {}, count = 1) {
  const id = await create(hooks, fields)
  await post(id, text)
  await expect.poll(() => waiting(id)).toHaveLength(count)
  return { id, requests: await waiting(id) }
}

const isRequest = ({ event }: Frame) => event === 'HookRequest'
const requestsIn = ({ frames }: Subscriber) => frames.filter(isRequest).map(({ data }) => data.request_id)

test('a client is asked over its stream, and its first answer decides', async () => {
  const id = await create()
  const [stream, other] = await Promise.all([
    listen(id),
    subscribe(server.url, `/conversations/${id}/events/stream?deltas=true`),
  ])
  expect((await call('GET', id, '/client-hooks')).body.items).toMatchObject([{ client: 'policy', connected: true }])
  expect((await call('GET', id)).body.client_hooks).toEqual(['policy'])
  await post(id, 'run one')
  const { data: request } = await stream.until(isRequest)
  expect(request).toMatchObject({
    conversation_id: id,
    client: 'policy',
    hook_id: 'guard',
    hook_point: 'PreToolUse',
    payload: { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command: 'echo one' } },
  })
  expect(Date.parse(request.deadline) - Date.parse(request.timestamp)).toBe(60_000)
  const { request_id, timestamp: opened_at, deadline, client, hook_id, hook_point, payload: input } = request
  const common = { kind: 'hook', request_id, opened_at, deadline, tool_use_ids: [input.tool_use_id] }
  expect(await waiting(id)).toEqual([{ ...common, payload: { client, hook_id, hook_point, input } }])
  const withoutInput = [{ ...common, payload: { client, hook_id, hook_point } }]
  expect(await waiting(id, ''), 'another client does not see the input').toEqual(withoutInput)
  expect(await waiting(id, 'client=other')).toEqual([])
  const given = decide('allow', { updatedInput: { command: 'echo two' } })
  expect(await answer(id, request.request_id, given)).toMatchObject({ status: 200, body: { pending: 0 } })
  await stream.until(({ event }) => event === 'Result')
  expect(await results(id)).toMatchObject([{ output: { stdout: 'two\n' } }])
  expect(await stage.events(id, 'types=HookEvent')).toMatchObject([
    { name: 'guard', action: 'rewrite', decision: 'allow', updated_input: { command: 'echo two' } },
  ])
  const { data: ended } = await stream.until(({ event }) => event === 'HookRequestEnded')
  expect(ended).toMatchObject({ request_id: request.request_id, reason: 'answered' })
  expect(await answer(id, request.request_id, given), 'the same again').toMatchObject({ status: 200 })
  expect(await answer(id, request.request_id, decide('deny'))).toMatchObject({ body: { error: 'already_answered' } })
  expect(other.frames.filter(({ event }) => event.startsWith('HookRequest'))).toEqual([])
  for (const each of [stream, other]) each.close()
})

test('a client that reconnects is asked again until it has answered, and then not any more', async () => {
  const { id, requests } = await ask('run one')
  const [{ request_id: request }] = requests
  for (const _ of [1, 2]) {
    const stream = await listen(id)
    await stream.until(isRequest)
    stream.close()
  }
  await answer(id, request, decide('deny', { permissionDecisionReason: 'not now' }))
  await settled(id)
  expect(await results(id)).toMatchObject([{ error_type: 'denied', output: expect.stringContaining('not now') }])
  const late = await listen(id)
  await post(id, 'run two')
  await late.until(isRequest)
  expect(requestsIn(late)).not.toContain(request)
  late.close()
})

describe('an answer is refused', () => {
  test('if it is garbage, unknown, or of another conversation: the hook still waits', async () => {
    const [{ id, requests }, other] = await Promise.all([ask('run one'), create()])
    const [{ request_id: request }] = requests
    for (const [body, message] of [
      [{}, /Send one of output, text and error/],
      [{ output: {}, error: 'x' }, /Send one of output, text and error/],
      [{ text: '{ no JSON' }, /not valid JSON/],
      [{ output: { hookSpecificOutput: { hookEventName: 'Stop' } } }, /names another point/],
      [{ output: { hookSpecificOutput: { permissionDecision: 'maybe' } } }, /permissionDecision/],
      [{ output: [] }, /output/],
      [{ behavior: 'allow' }, /unknown field/],
    ] as const)
      expect(await answer(id, request, body)).toMatchObject({
        status: 400,
        body: { message: expect.stringMatching(message) },
      })
    const unknown = { status: 404, body: { error: 'request_not_found' } }
    expect(await answer(other, request, decide('allow'))).toMatchObject(unknown)
    expect(await answer(id, crypto.randomUUID(), decide('allow'))).toMatchObject(unknown)
    expect(await waiting(id)).toMatchObject(requests)
    await answer(id, request, { error: 'the policy service is down' })
    await settled(id)
    expect(await results(id)).toMatchObject([{ error_type: 'denied', output: expect.stringContaining('is down') }])
  })

  test('after the deadline: a hook that may deny has denied, others continue', async () => {
    const after = { PostToolUse: [{ hooks: [{ id: 'watch', timeout: 0.3 }] }] }
    // It waits for a short time only, which a slow machine may miss.
    const { id, request } = await longEnough(0.3, async (timeout) => {
      const made = await create({ ...pre({ timeout }), ...after })
      await post(made, 'run one')
      const seen = await until('the hook', async () => {
        const [first] = await waiting(made)
        return first ?? ((await call('GET', made)).body.status === 'idle' && 'too late')
      })
      return seen !== 'too late' && { id: made, request: seen.request_id as string }
    })
    await settled(id)
    expect(await answer(id, request, decide('allow'))).toMatchObject({ body: { error: 'request_closed' } })
    const why = /did not answer within [\d.]+ s \(its client policy is not connected.*DELETE client-hooks\/policy\)/
    expect(await results(id)).toMatchObject([{ error_type: 'denied', output: expect.stringMatching(why) }])
    await register(id, { ...pre({ timeout: 0.1, on_failure: 'continue' }), ...after })
    await post(id, 'run two')
    await expect.poll(() => results(id)).toHaveLength(2)
    expect((await results(id)).at(-1)).toMatchObject({ is_error: false, output: { stdout: 'two\n' } })
  })

  test('from a key without the scope', async () => {
    const { id, requests } = await ask('run one')
    const keyOf = async (scopes: string[]) => {
      const { body } = await server.call('POST', '/keys', { name: scopes.join(), scopes })
      return { authorization: `Bearer ${body.key}` }
    }
    const [writer, approver] = [await keyOf(['read', 'write']), await keyOf(['approve'])]
    const path = `/requests/${requests[0].request_id}`
    const allow = { kind: 'hook', ...decide('allow') }
    expect(await call('POST', id, path, allow, writer)).toMatchObject({ status: 403 })
    expect(await call('PUT', id, '/client-hooks/own', { hooks: {} }, writer)).toMatchObject({ status: 403 })
    expect(await call('PUT', id, '/client-hooks/own', { hooks: {} }, approver)).toMatchObject({
      body: { details: { missing_scopes: ['read'] } },
    })
    expect(await call('DELETE', id, '/client-hooks/policy', undefined, writer)).toMatchObject({ status: 403 })
    expect(await call('POST', id, path, allow, approver)).toMatchObject({ status: 200 })
  })
})

describe('each call has one result', () => {
  test('of fifty, whose hooks wait at the same time, and whose client disconnects in between', async () => {
    const words = Array.from({ length: 50 }, (_, at) => `w${at}`)
    const { id } = await ask(`run ${words.join(' ')}`, pre(), {}, 8)
    const asked = new Set<string>()
    for (let stream = await listen(id), round = 0; asked.size < 50; round++) {
      await expect.poll(() => requestsIn(stream).some((request) => !asked.has(request))).toBe(true)
      const fresh = requestsIn(stream).filter((request) => !asked.has(request))
      for (const request of fresh) {
        asked.add(request)
        await Promise.all([answer(id, request, decide('deny')), answer(id, request, decide('deny'))])
      }
      if (round % 3 > 0) continue
      stream.close()
      stream = await listen(id)
    }
    await settled(id)
    const ids = (await results(id)).map(({ tool_use_id }) => tool_use_id)
    expect([ids.length, new Set(ids).size]).toEqual([50, 50])
  })

  test.each([
    { interrupt: false, status: 'paused', reason: 'interrupted', count: 0 },
    { interrupt: true, status: 'paused', reason: 'interrupted', count: 1 },
  ])('after a pause with interrupt $interrupt', async ({ interrupt, status, reason, count }) => {
    const { id, requests } = await ask('run one')
    const stream = await listen(id)
    await call('POST', id, '/pause', { interrupt })
    await settled(id, status)
    const { data } = await stream.until(({ event }) => event === 'HookRequestEnded')
    expect(data).toMatchObject({ reason })
    stream.close()
    expect(await results(id)).toHaveLength(count)
    expect(await answer(id, requests[0].request_id, decide('allow'))).toMatchObject({
      body: { error: 'request_closed' },
    })
    await (interrupt ? post(id, 'run two') : call('POST', id, '/run', {}))
    await expect.poll(() => waiting(id)).toHaveLength(1)
    await answer(id, (await waiting(id))[0].request_id, decide('allow'))
    await settled(id)
    expect((await results(id)).map(({ error_type }) => error_type)).toEqual(
      interrupt ? ['interrupted', undefined] : [undefined],
    )
  })

  test('of a subagent', async () => {
    const { id, requests } = await ask('delegate inner')
    expect(requests).toMatchObject([
      { payload: { input: { agent_type: 'general-purpose', tool_input: { command: 'echo inner' } } } },
    ])
    await answer(id, requests[0].request_id, decide('ask'))
    await settled(id, 'waiting_for_confirmation')
    await call('POST', id, '/reject', {})
    await post(id, 'enough')
    await settled(id)
  })

  test('when the client is removed while its hook waits, and when the conversation is deleted', async () => {
    const { id } = await ask('run one')
    const stream = await listen(id)
    await stream.until(isRequest)
    expect(await call('DELETE', id, '/client-hooks/policy')).toMatchObject({ status: 204 })
    expect(await call('DELETE', id, '/client-hooks/policy'), 'idempotent').toMatchObject({ status: 204 })
    await settled(id)
    stream.close()
    expect(await results(id)).toMatchObject([{ error_type: 'denied' }])
    await expect(listen(id)).rejects.toThrow('client_hooks_not_found')
    const gone = await ask('run one', { ...pre(), SessionEnd: [{ hooks: [{ id: 'end' }] }] })
    const last = await listen(gone.id)
    await call('DELETE', gone.id)
    await last.until(({ event }) => event === 'deleted')
    expect(last.frames.filter(isRequest).at(-1)!.data, 'nobody waits for it').toMatchObject({ hook_id: 'end' })
    expect(await answer(gone.id, gone.requests[0].request_id, decide('allow'))).toMatchObject({ status: 410 })
  })

  test('when the server is killed: the call is interrupted, and the hooks hold for the next run', async () => {
    const model = { PreModelCall: [{ hooks: [{ id: 'request' }] }] }
    const [{ id, requests }, resuming] = await Promise.all([
      ask('run one'),
      ask('hello', model, { resume_on_start: true }),
    ])
    await server.restart('SIGKILL')
    const stream = await listen(resuming.id)
    const { data: again } = await stream.until(isRequest)
    expect(resuming.requests.map(({ request_id }) => request_id)).not.toContain(again.request_id)
    await answer(resuming.id, again.request_id, { output: {} })
    await stream.until(({ event, data }) => event === 'Result' && data.stop_reason === 'completed')
    stream.close()
    expect(await results(id)).toMatchObject([{ error_type: 'interrupted' }])
    expect(await answer(id, requests[0].request_id, decide('allow'))).toMatchObject({ status: 404 })
    await post(id, 'run two')
    await expect.poll(() => waiting(id)).toHaveLength(1)
    await answer(id, (await waiting(id))[0].request_id, decide('deny'))
    await settled(id)
    expect((await results(id)).map(({ error_type }) => error_type)).toEqual(['interrupted', 'denied'])
  })
})

test('a message waits for its hook, which a socket answers; a rewritten request is sent', async () => {
  const hooks = {
    UserPromptSubmit: [{ hooks: [{ id: 'prompt' }] }],
    PreModelCall: [{ hooks: [{ id: 'request' }] }],
  }
  const id = await create(hooks, { enable_message_rewrite_hooks: true })
  const socket = await connect(server.url, `/conversations/${id}/ws?hook_client=policy`)
  const posted = post(id, 'hello')
  const { request_id: first } = await socket.until(({ type }) => type === 'HookRequest')
  expect(await stage.events(id, 'types=UserMessage')).toEqual([])
  socket.say({ type: 'answer', id: 'a', request_id: first, answer: { kind: 'hook', text: 'Context.' } })
  expect(await socket.until(({ type }) => type === 'ack')).toMatchObject({
    id: 'a',
    of: 'answer',
    result: { pending: 0 },
  })
  expect(await posted).toMatchObject({ status: 202 })
  const second = await socket.until(({ type, hook_id }) => type === 'HookRequest' && hook_id === 'request')
  expect(second.payload.messages.at(-1).content).toMatchObject([
    { text: 'hello' },
    { text: 'UserPromptSubmit hook: Context.' },
  ])
  const updatedMessages = [{ role: 'user', content: 'something else' }]
  await answer(id, second.request_id, { output: { hookSpecificOutput: { updatedMessages } } })
  await settled(id)
  expect((await stage.events(id, 'types=Result'))[0].final_text).toBe('something else')
  socket.close()
})

test('the changed input of the client which registered last counts, whatever it is called', async () => {
  const id = await create(pre(), {})
  for (const client of ['zeta', '10', '2']) await register(id, pre(), client)
  await register(id, pre({ timeout: 30 }), 'policy')
  const { items } = (await call('GET', id, '/client-hooks')).body
  expect(items.map(({ client }: { client: string }) => client)).toEqual(['zeta', '10', '2', 'policy'])
  await post(id, 'run one')
  await expect.poll(() => waiting(id, '')).toHaveLength(4)
  for (const { request_id, payload } of await waiting(id, ''))
    await answer(id, request_id, decide('allow', { updatedInput: { command: `echo ${payload.client}` } }))
  await settled(id)
  expect(await results(id)).toMatchObject([{ output: { stdout: 'policy\n' } }])
})

test('what cannot be registered is refused with its field', async () => {
  const id = await create({})
  const twice = { hooks: [{ id: 'a' }, { id: 'a' }] }
  for (const [hooks, path] of [
    [{ Never: [] }, /unknown field/],
    [{ PreToolUse: [{ hooks: [{ id: 'a', type: 'command' }] }] }, /unknown field/],
    [{ PreToolUse: [twice] }, /two hooks have the same id/],
    [{ PreToolUse: [{ matcher: '(a+)+', hooks: [{ id: 'a' }] }] }, /matcher/],
    [{ PreToolUse: [{ hooks: [{ id: 'a', timeout: 601 }] }] }, /timeout/],
  ] as const)
    expect(await register(id, hooks)).toMatchObject({ status: 400, body: { message: expect.stringMatching(path) } })
  for (const name of ['a%2Fb', '__proto__', 'a'.repeat(65)])
    expect(await register(id, {}, name)).toMatchObject({ status: 400 })
  for (let at = 1; at < 20; at++) await register(id, {}, `client-${at}`)
  expect(await register(id, {}, 'one-more')).toMatchObject({ status: 400 })
  const { last_seq } = (await call('GET', id)).body
  await register(id, {}, 'client-1')
  expect((await call('GET', id)).body.last_seq, 'the same again stores nothing').toBe(last_seq)
})
