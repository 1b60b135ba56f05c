import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { subscribe } from '../support/stream.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { answer, approve, requestsOf } from './requests.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

const two = (a: string, b: string): ScriptedTurn => {
  return { calls: [a, b].map((command) => ({ name: 'Bash', arguments: { command } })) }
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Lets the agent work until it asks; answers what it asks. */
async function ask(stage: Stage, id: string) {
  const { call } = stage.server
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' } })
  const { body } = await call('POST', `/conversations/${id}/run`, { wait: true, timeout: PATIENCE_S })
  expect(body).toEqual({ run_id: expect.any(String), status: 'waiting_for_confirmation' })
  const [request] = await requestsOf(call, id, 'permission')
  const { request_id, payload } = request
  return { runId: body.run_id as string, request, request_id, tool_uses: payload.tool_uses }
}

const idle = (stage: Stage, id: string) =>
  expect.poll(async () => (await stage.server.call('GET', `/conversations/${id}`)).body.status).toBe('idle')

test('what was asked for is still asked for after a kill and after a stop, and runs only when it is approved as shown', async () => {
  await using stage = await setStage([two('touch one', 'touch two'), { text: 'Done.' }], shared)
  const { server } = stage
  const id = await stage.create({ confirmation_mode: true })
  const { workdir } = (await server.call('GET', `/conversations/${id}`)).body
  const { request, request_id, tool_uses, runId } = await ask(stage, id)
  expect(request).toEqual({
    kind: 'permission',
    request_id,
    opened_at: expect.any(String),
    tool_use_ids: tool_uses.map((use: any) => use.tool_use_id), // eslint-disable-line typescript/no-explicit-any
    payload: { tool_uses },
  })
  const decide = (...decisions: object[]) => answer(server.call, id, request_id, { kind: 'permission', decisions })
  const decision = (at: number, more: object = {}) => {
    const { tool_use_id, input_hash } = tool_uses[at]
    return { tool_use_id, input_hash, behavior: 'allow', ...more }
  }

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await server.restart(signal)
    expect((await server.call('GET', `/conversations/${id}`)).body).toMatchObject({
      status: 'waiting_for_confirmation',
      state: { agent_waiting_for_confirmation: true, confirmation_mode: true },
    })
    expect(await requestsOf(server.call, id, 'permission')).toEqual([request])
  }
  const refusals = [
    await server.call('POST', `/conversations/${id}/run`),
    await decide(decision(0, { input_hash: tool_uses[1].input_hash })),
    await decide(decision(0, { tool_use_id: 'other' })),
    await answer(server.call, id, id, { kind: 'permission', decisions: [decision(0)] }),
    await answer(server.call, id, request_id),
    await answer(server.call, id, request_id, { kind: 'question', answers: { 0: 'yes' } }),
    await decide(decision(0, { updated_input: { cmd: 'touch one' } })),
  ]
  expect(refusals.map(({ status, body }) => [status, body.error])).toEqual([
    [409, 'waiting_for_confirmation'],
    [409, 'input_changed'],
    [400, 'invalid_request'],
    [404, 'request_not_found'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
  ])
  expect(refusals[0]!.body.details).toMatchObject({ request_id, pending: [{ name: 'Bash' }, { name: 'Bash' }] })
  expect(await Promise.all(['one', 'two'].map((name) => exists(join(workdir, name))))).toEqual([false, false])

  const first = await decide(decision(1, { updated_input: { command: 'touch three' } }))
  expect(first).toMatchObject({ status: 200, body: { status: 'waiting_for_confirmation', pending: 1 } })
  await server.restart('SIGKILL')
  const second = await decide(decision(0, { behavior: 'deny', message: 'no' }))
  expect(second).toMatchObject({ status: 200, body: { status: 'running', pending: 0 } })
  await idle(stage, id)

  expect(await Promise.all(['one', 'two', 'three'].map((name) => exists(join(workdir, name))))).toEqual([
    false,
    false,
    true,
  ])
  const events = await stage.events(id)
  expect(events.map((event) => event.type)).toEqual([
    'SystemInit',
    'UserMessage',
    'StatusUpdate',
    'AssistantMessage',
    'ToolUse',
    'ToolUse',
    'RequestOpened',
    'StatusUpdate',
    'RequestAnswered',
    'RequestAnswered',
    'ToolResult',
    'StatusUpdate',
    'ToolResult',
    'AssistantMessage',
    'Result',
    'StatusUpdate',
  ])
  expect(events.filter((event) => event.type === 'Result')).toMatchObject([{ run_id: runId, stop_reason: 'completed' }])
  const read = stage.model.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
  expect(read.map(({ tool_call_id }) => tool_call_id)).toEqual(tool_uses.map((use: any) => use.tool_use_id)) // eslint-disable-line typescript/no-explicit-any
  expect(read.map(({ content }) => content)).toEqual([
    expect.stringContaining('did not allow this call: no'),
    expect.stringContaining('touch three'),
  ])

  const again = await decide(decision(0, { behavior: 'deny' }))
  expect(again, 'the same answer, long afterwards').toMatchObject({ status: 200, body: { status: 'idle', pending: 0 } })
  const otherwise = await decide(decision(0))
  expect(otherwise).toMatchObject({ status: 409, body: { error: 'already_answered' } })
  const late = await server.call('POST', `/conversations/${id}/reject`)
  expect(late).toMatchObject({ status: 409, body: { error: 'nothing_pending' } })
})

test('a subscriber sees the request and the decision; an approval runs all calls; reject ends the run without the model', async () => {
  await using stage = await setStage([bash('touch one'), bash('touch two'), { text: 'Done.' }], shared)
  const { server } = stage
  const id = await stage.create({ confirmation_mode: true })
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream`)
  const { request_id } = await ask(stage, id)
  expect((await stream.until(({ event }) => event === 'RequestOpened')).data.request_id).toBe(request_id)
  expect(await approve(server.call, id, request_id)).toEqual({ status: 'running', pending: 0 })
  await stream.until(({ event, data }) => event === 'RequestOpened' && data.request_id !== request_id)
  expect(stream.frames.filter(({ event }) => event === 'RequestAnswered')).toHaveLength(1)
  await expect
    .poll(async () => (await server.call('GET', `/conversations/${id}`)).body.status)
    .toBe('waiting_for_confirmation')
  expect(await server.call('POST', `/conversations/${id}/reject`, { reason: 'enough' })).toMatchObject({
    status: 200,
    body: { status: 'idle' },
  })
  const result = await stream.until(({ event }) => event === 'Result')
  expect(result.data).toMatchObject({ stop_reason: 'rejected', steps: 2 })
  stream.close()
  expect(stage.model.requests).toHaveLength(2)
  expect(await stage.events(id, 'types=RequestOpened,RequestAnswered')).toMatchObject([
    { type: 'RequestOpened', kind: 'permission' },
    { type: 'RequestAnswered', kind: 'permission', answer: { decisions: [{ behavior: 'allow' }] } },
    { type: 'RequestOpened', kind: 'permission' },
    {
      type: 'RequestAnswered',
      kind: 'permission',
      answer: { decisions: [{ behavior: 'deny', message: 'enough' }] },
    },
  ])
})

test('a pause keeps the pending request; turning the mode off decides nothing, but applies to the next call', async () => {
  await using stage = await setStage([bash('echo one'), bash('echo two'), { text: 'Done.' }], shared)
  const { server } = stage
  const id = await stage.create()
  const mode = (enabled: boolean) => server.call('POST', `/conversations/${id}/confirmation`, { enabled })
  expect((await mode(true)).body.state.confirmation_mode).toBe(true)
  const { request_id } = await ask(stage, id)
  expect((await server.call('POST', `/conversations/${id}/pause`)).body).toEqual({ status: 'paused' })
  expect((await mode(false)).body).toMatchObject({ status: 'paused', state: { confirmation_mode: false } })
  const { body } = await server.call('POST', `/conversations/${id}/run`, { wait: true, timeout: PATIENCE_S })
  expect(body.status).toBe('waiting_for_confirmation')
  await approve(server.call, id, request_id)
  await idle(stage, id)
  const events = await stage.events(id)
  expect(events.filter((event) => event.type === 'RequestOpened')).toHaveLength(1)
  expect(events.filter((event) => event.type === 'Result').map((event) => event.stop_reason)).toEqual([
    'paused',
    'completed',
  ])
  expect(events.filter((event) => event.type === 'ConfigUpdate').map((event) => event.changes)).toEqual([
    { confirmation_mode: true },
    { confirmation_mode: false },
  ])
})

test('a create and a message repeated with their key, also to a server that was killed, take effect once', async () => {
  await using stage = await setStage([{ text: 'Hello.' }])
  const { server, model } = stage
  const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
  const create = () => server.call('POST', '/conversations', { llm_config }, { 'idempotency-key': 'create-1' })
  const made = await create()
  const { id } = made.body
  const post = (content = 'hi') =>
    server.call(
      'POST',
      `/conversations/${id}/messages`,
      { message: { role: 'user', content }, run: true },
      { 'idempotency-key': 'message-1' },
    )
  const posted = await post()
  await server.restart('SIGKILL')
  expect((await create()).body.id).toBe(id)
  expect((await post()).body).toEqual(posted.body)
  expect(await post('ho')).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
  expect((await server.call('GET', '/conversations/count')).body).toEqual({ count: 1 })
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)
})

/** A turn of two commands, whose first one runs until the file `go` is there. */
async function inFirstOfTwo(fields: object = {}) {
  const first = 'touch first; until [ -e go ]; do sleep 0.05; done; echo through'
  const stage = await setStage([two(first, 'touch second'), { text: 'Done.' }], shared)
  const id = await stage.create({ ...fields })
  const { call } = stage.server
  const { workdir } = (await call('GET', `/conversations/${id}`)).body
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  await expect.poll(() => exists(join(workdir, 'first'))).toBe(true)
  return { stage, id, workdir, letGo: () => writeFile(join(workdir, 'go'), '') }
}

const runToItsEnd = (stage: Stage, id: string) =>
  stage.server.call('POST', `/conversations/${id}/run`, { wait: true, timeout: PATIENCE_S })

test('confirmation turned on while a command runs holds for the next command of that turn, also over a kill', async () => {
  const { stage, id, workdir, letGo } = await inFirstOfTwo()
  await using _ = stage
  const { call, restart } = stage.server
  await call('POST', `/conversations/${id}/confirmation`, { enabled: true })
  await letGo()
  await expect
    .poll(async () => (await call('GET', `/conversations/${id}`)).body.status)
    .toBe('waiting_for_confirmation')
  await restart('SIGKILL')
  const [request] = await requestsOf(call, id, 'permission')
  expect(request.payload.tool_uses).toMatchObject([{ name: 'Bash', input: { command: 'touch second' } }])
  expect(await exists(join(workdir, 'second'))).toBe(false)
  await approve(call, id, request.request_id)
  await idle(stage, id)
  expect(await exists(join(workdir, 'second'))).toBe(true)
})

test('a message to a paused agent is read before the rest of the turn runs: the rest never runs', async () => {
  const { stage, id, workdir, letGo } = await inFirstOfTwo()
  await using _ = stage
  const { call } = stage.server
  await call('POST', `/conversations/${id}/pause`)
  const message = { role: 'user', content: 'do not run the second one' }
  await call('POST', `/conversations/${id}/messages`, { message })
  await letGo()
  expect((await runToItsEnd(stage, id)).body).toMatchObject({ status: 'idle', result: { stop_reason: 'completed' } })
  expect(await exists(join(workdir, 'second'))).toBe(false)
  const read = stage.model.requests.at(-1)!.body.messages.slice(1)
  expect(read.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
  expect(read.map(({ content }) => content)).toMatchObject([
    'go',
    null,
    expect.stringContaining('through'),
    expect.stringContaining('did not run'),
    'do not run the second one',
  ])
})

test('a pause with interrupt ends the command and gives up the rest; a kill and a run later it has still not run', async () => {
  const { stage, id, workdir } = await inFirstOfTwo()
  await using _ = stage
  const { call, restart } = stage.server
  await call('POST', `/conversations/${id}/pause`, { interrupt: true })
  // A command that ends slowly gets its result later than the pause its answer.
  await expect
    .poll(() => stage.events(id, 'types=ToolResult'))
    .toMatchObject([{ error_type: 'interrupted' }, { error_type: 'interrupted' }])
  await restart('SIGKILL')
  expect((await runToItsEnd(stage, id)).body).toMatchObject({ status: 'idle' })
  expect(await exists(join(workdir, 'second'))).toBe(false)
  expect(await stage.events(id, 'types=ToolResult')).toHaveLength(2)
})
