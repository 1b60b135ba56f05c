/** Agents as tasks of the Model Context Protocol, for a client that declares with each request that it polls them. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const stage = await setStage(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { llm_config: LLM })

function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = JSON.stringify(last?.content ?? '')
  if (last?.role === 'tool') return { text: 'It is done.' }
  const [command] = /touch \w+/.exec(said) ?? []
  if (command)
    return { text: 'I try it. '.repeat(5), chunk_delay_ms: 20, calls: [{ name: 'Bash', arguments: { command } }] }
  if (said.includes('slowly')) return { text: 'and so on '.repeat(400), chunk_delay_ms: 60 }
  if (said.includes('fails')) return { status: 400, text: '' }
  return { text: `Heard: ${/hello \w+/.exec(said)?.[0] ?? 'nothing'}`, chunk_delay_ms: 20 }
}

const EXTENSION = 'io.modelcontextprotocol/tasks'
const TASKS = { extensions: { [EXTENSION]: {} } }

type Sent = { readonly key?: string; readonly capabilities?: object }

const metaOf = (capabilities: object) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
})

async function send(method: string, params: Record<string, unknown>, { key = KEY, capabilities = TASKS }: Sent = {}) {
  const _meta = metaOf(capabilities)
  const name = params['name'] ?? params['taskId']
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
  const text = await response.text()
  const { result, error } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text)
  return { status: response.status, result, error }
}

const call = async (name: string, args: object, sent?: Sent) =>
  (await send('tools/call', { name, arguments: args }, sent)).result

/** Asks until the task has ended. */
async function endOf(taskId: string) {
  let last = (await send('tasks/get', { taskId })).result
  await until('the task ends', async () => {
    last = (await send('tasks/get', { taskId })).result
    return last.status !== 'working'
  })
  return last
}

test('the extension is advertised, and an agent that works is a task, whose result is that of the tool', async () => {
  const { result } = await send('server/discover', {})
  expect(result.capabilities.extensions).toEqual({ [EXTENSION]: {} })
  const started = await call('start_agent', { prompt: 'hello you' })
  expect(started).toMatchObject({
    resultType: 'task',
    status: 'working',
    ttlMs: null,
    pollIntervalMs: expect.any(Number),
  })
  const end = await endOf(started.taskId)
  const { conversation_id } = started.structuredContent
  expect(end).toMatchObject({
    resultType: 'complete',
    taskId: started.taskId,
    status: 'completed',
    createdAt: started.createdAt,
    result: {
      resultType: 'complete',
      structuredContent: { conversation_id, status: 'idle', final_text: 'Heard: hello you' },
    },
  })
  expect(end.result.content[0].text).toContain(`Conversation ${conversation_id}: idle`)
})

test('an agent that waits for a decision ends its task, and the decision is the next one', async () => {
  const started = await call('start_agent', { prompt: 'touch tasked' })
  const waiting = await endOf(started.taskId)
  const { conversation_id, pending } = waiting.result.structuredContent
  expect(waiting).toMatchObject({ status: 'completed', result: { structuredContent: { pending: [{ name: 'Bash' }] } } })
  const { request_id, tool_use_id, input_hash } = pending[0]
  const decision = { conversation_id, request_id, tool_use_id, input_hash, behavior: 'allow' }
  const decided = await call('decide', decision)
  const done = decided.resultType === 'task' ? (await endOf(decided.taskId)).result : decided
  expect(done.structuredContent).toMatchObject({ status: 'idle', final_text: 'It is done.', pending: [] })
  const { body } = await server.call('GET', `/conversations/${conversation_id}`)
  await access(join(body.workdir, 'tasked'))
  // What has been decided is no longer asked. The task stays what it was.
  const later = (await send('tasks/get', { taskId: started.taskId })).result
  expect(later).toMatchObject({
    status: 'completed',
    result: { structuredContent: { status: 'waiting_for_confirmation', pending: [] } },
  })
})

test('a task that is cancelled interrupts the agent, and cancelling it again stops no later run', async () => {
  const { taskId, structuredContent } = await call('start_agent', { prompt: 'slowly' })
  expect((await send('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' })
  expect(await endOf(taskId)).toMatchObject({ status: 'cancelled' })
  const { conversation_id } = structuredContent
  const next = await call('continue_agent', { conversation_id, prompt: 'slowly' })
  await send('tasks/cancel', { taskId })
  await send('tasks/update', { taskId, inputResponses: { unknown: { action: 'accept' } } })
  expect((await send('tasks/get', { taskId: next.taskId })).result.status).toBe('working')
  expect((await send('tasks/get', { taskId })).result.status).toBe('cancelled')
  await call('stop_agent', { conversation_id })
  expect((await endOf(next.taskId)).status).toBe('cancelled')
})

test('a task keeps its result when the agent continues, when it is taken back, and over a restart', async () => {
  const { taskId, structuredContent } = await call('start_agent', { prompt: 'hello first' })
  const first = await endOf(taskId)
  const { conversation_id } = structuredContent
  const next = await call('continue_agent', { conversation_id, prompt: 'hello second' })
  expect((await endOf(next.taskId)).result.structuredContent.final_text).toBe('Heard: hello second')
  expect((await send('tasks/get', { taskId })).result.result).toEqual(first.result)
  const path = `/conversations/${conversation_id}`
  const { last_seq } = (await server.call('GET', path)).body
  await server.call('POST', `${path}/rewind`, { to_seq: first.result.structuredContent.seq, last_seq })
  await server.restart('SIGTERM')
  expect((await send('tasks/get', { taskId: next.taskId })).result.result.structuredContent.final_text).toBe(
    'Heard: hello second',
  )
  expect((await send('tasks/get', { taskId })).result.result).toEqual(first.result)
})

test('a failed run is the result of a completed task', async () => {
  const { taskId } = await call('start_agent', { prompt: 'it fails' })
  const end = await endOf(taskId)
  expect(end).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'error' } } })
  expect(end.result.structuredContent.error).not.toBe('')
})

test('a run that a kill of the server ends is a task that says why', async () => {
  const { taskId } = await call('start_agent', { prompt: 'slowly' })
  await server.restart('SIGKILL')
  const { result } = await endOf(taskId)
  expect(result).toMatchObject({ structuredContent: { status: 'paused', stop_reason: 'server_restart' } })
  expect(result.content[0].text).toContain('server_restart')
})

test('a client that does not declare the extension gets no task, and may ask for none', async () => {
  const { taskId, structuredContent } = await call('start_agent', { prompt: 'slowly' })
  for (const capabilities of [{}, { extensions: {} }]) {
    const waited = await call('start_agent', { prompt: 'hello', wait_seconds: 45 }, { capabilities })
    expect(waited).toMatchObject({ resultType: 'complete', structuredContent: { status: 'idle' } })
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
      expect(await send(method, { taskId, inputResponses: {} }, { capabilities })).toMatchObject({
        error: { code: -32021, data: { requiredCapabilities: TASKS } },
      })
  }
  expect((await send('tasks/get', { taskId })).result.status).toBe('working')
  await call('stop_agent', { conversation_id: structuredContent.conversation_id })
})

const openListening = async (taskIds: readonly string[], { key = KEY, capabilities = TASKS }: Sent = {}) =>
  await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'listening',
      method: 'subscriptions/listen',
      params: { notifications: { taskIds }, _meta: metaOf(capabilities) },
    }),
  })

/** What a client that listens to tasks gets, until the server ends it. */
async function listen(taskIds: readonly string[], sent?: Sent) {
  const text = await (await openListening(taskIds, sent)).text()
  if (!text.includes('data: ')) return [JSON.parse(text)]
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!))
}

const agreedTo = (taskIds: readonly string[]) => ({
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications: taskIds.length > 0 ? { taskIds } : {}, _meta: SUBSCRIPTION },
})
const SUBSCRIPTION = { 'io.modelcontextprotocol/subscriptionId': 'listening' }
const OVER = { id: 'listening', result: { resultType: 'complete', _meta: SUBSCRIPTION } }

test('a client that listens to tasks gets what they are now, and the end of each', async () => {
  const [one, other] = [
    await call('start_agent', { prompt: 'please touch it' }),
    await call('start_agent', { prompt: 'slowly' }),
  ]
  const listening = listen([one.taskId, 'nothing', other.taskId, one.taskId])
  const first = await endOf(one.taskId)
  await send('tasks/cancel', { taskId: other.taskId })
  const [agreed, ...news] = await listening
  expect(agreed).toMatchObject(agreedTo([one.taskId, other.taskId]))
  expect(news.at(-1)).toMatchObject(OVER)
  const about = (taskId: string) => news.filter(({ params }) => params?.taskId === taskId).map(({ params }) => params)
  expect(about(one.taskId).map(({ status }) => status)).toEqual(['working', 'completed'])
  const { resultType: _, ...shown } = first
  expect(about(one.taskId).at(-1)).toEqual({ ...shown, _meta: SUBSCRIPTION })
  expect(about(other.taskId).map(({ status }) => status)).toEqual(['working', 'cancelled'])
  // A task that has ended before is told of at once.
  const late = await listen([one.taskId])
  expect(late.map(({ params }) => params?.status)).toEqual([undefined, 'completed', undefined])
})

test('nobody listens to tasks that the key does not see, or without the extension, and nothing else is announced', async () => {
  const { taskId } = await call('start_agent', { prompt: 'slowly' })
  const { key } = (await server.call('POST', '/keys', { name: 'other', scopes: ['read'], user_id: 'other' })).body
  expect(await listen([taskId], { key })).toMatchObject([agreedTo([]), OVER])
  expect(await listen([taskId], { capabilities: {} })).toMatchObject([{ id: 'listening', error: { code: -32_021 } }])
  const { result, error } = await send('subscriptions/listen', { notifications: { toolsListChanged: true } })
  expect([result, error]).toEqual([undefined, undefined])
  await send('tasks/cancel', { taskId })
})

test('an agent works on when a client that listens to its task goes', async () => {
  const { taskId } = await call('start_agent', { prompt: 'slowly' })
  const reader = (await openListening([taskId])).body!.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader.read()).value).toContain(taskId)
  await reader.cancel()
  expect((await send('tasks/get', { taskId })).result.status).toBe('working')
  await send('tasks/cancel', { taskId })
  expect((await listen([taskId])).at(-1)).toMatchObject(OVER)
})

test('a subscription to a task ends when its conversation is deleted', async () => {
  const { taskId } = await call('start_agent', { prompt: 'slowly' })
  const response = await openListening([taskId])
  await server.call('DELETE', `/conversations/${taskId.split('.')[0]}`)
  expect(JSON.parse((await response.text()).trim().split('data: ').at(-1)!)).toMatchObject(OVER)
  expect((await send('tasks/get', { taskId })).error.code).toBe(-32_602)
})

test('with wait_seconds 0 a client gets the report, and no task', async () => {
  const started = await call('start_agent', { prompt: 'slowly', wait_seconds: 0 })
  expect(started).toMatchObject({ resultType: 'complete', structuredContent: { status: 'running' } })
  const { conversation_id } = started.structuredContent
  const seen = await call('get_agent', { conversation_id, wait_seconds: 0 })
  expect(seen.resultType).toBe('complete')
  await call('stop_agent', { conversation_id })
})

test('tasks of other users and unknown ones are the same error, and a key without write cancels none', async () => {
  const { taskId, structuredContent } = await call('start_agent', { prompt: 'slowly' })
  const { conversation_id } = structuredContent
  const keyWith = async (fields: object) => (await server.call('POST', '/keys', { name: 'tasks', ...fields })).body.key
  const other = await keyWith({ scopes: ['read', 'write'], user_id: 'ada' })
  const unknown = [
    `${crypto.randomUUID()}.1`,
    `${conversation_id}.999999`,
    `${conversation_id}.0`,
    `${conversation_id}.-1`,
    `${conversation_id}.1e9`,
    `${conversation_id}.${'9'.repeat(16)}`,
    conversation_id,
    '../../keys',
    '',
    'a'.repeat(2000),
  ]
  for (const each of unknown)
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
      expect(await send(method, { taskId: each, inputResponses: {} }), `${method} ${each}`).toMatchObject({
        error: { code: -32602 },
      })
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
    expect((await send(method, { taskId, inputResponses: {} }, { key: other })).error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^conversation_not_found/),
    })
  const reader = await keyWith({ scopes: ['read'] })
  expect((await send('tasks/get', { taskId }, { key: reader })).result.status).toBe('working')
  expect((await send('tasks/cancel', { taskId }, { key: reader })).error).toMatchObject({
    code: -32000,
    message: expect.stringMatching(/^forbidden/),
  })
  expect((await send('tasks/get', { taskId })).result.status).toBe('working')
  await call('stop_agent', { conversation_id })
})
