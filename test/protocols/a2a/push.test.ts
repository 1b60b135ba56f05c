/** Push notifications of A2A, to a real receiver: they are callbacks, with their retries and their rules for addresses. */
import type { TaskPushNotificationConfig } from '@a2a-js/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MAX_CALLBACKS } from '../../../src/contract/callback.ts'
import { a2aClient, answerIn, askedIn, say, says, sendRaw } from '../../support/a2a.ts'
import { bash, setStageHere } from '../../support/agent.ts'
import type { Received } from '../../support/receiver.ts'
import { startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { task } from '../../support/subagents.ts'

const inBackground = (prompt: string) => task(prompt, { run_in_background: true, description: 'a file' })
/** What the last answer of an agent waits for that delegates, and the first one of its subagent. */
let [agentWaits, subagentWaits]: [Promise<void>, Promise<void>] = [Promise.resolve(), Promise.resolve()]
const stage = await setStageHere(
  async ({ body: { messages } }) => {
    const last = messages.at(-1)
    const isResult = last?.role === 'tool'
    if (!isResult && JSON.stringify(last?.content).includes('delegate'))
      return { calls: [inBackground('touch it later')] }
    if (isResult && JSON.stringify(messages).includes('delegate')) await agentWaits
    else if (!isResult && JSON.stringify(last?.content).includes('touch it later')) await subagentWaits
    return JSON.stringify(messages.at(-1)?.content).includes('never stop')
      ? { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
      : messages.at(-1)?.role !== 'tool' && JSON.stringify(messages.at(-1)?.content).includes('touch')
        ? bash('touch it')
        : { text: 'It is done.' }
  },
  { OPENHANDS_PROTOCOLS: 'a2a', OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  await server.call('PUT', '/profiles/default', { tools: ['Bash'], agents, llm_config })
})

const configOf = (url: string, more: Partial<TaskPushNotificationConfig> = {}): TaskPushNotificationConfig => ({
  tenant: '',
  id: '',
  taskId: '',
  url,
  token: 'a-token-of-the-client',
  authentication: { scheme: 'Bearer', credentials: 'the-credentials-of-the-client' },
  ...more,
})

/** A notification has no event. */
const taskIn = ({ text }: Received) => JSON.parse(text).task
const statesIn = (all: readonly Received[]) => all.map((one) => taskIn(one).status.state)

test('a client learns when its task needs input and when it ends, also after a failed delivery and a restart', async () => {
  await using receiver = await startReceiver()
  let attempts = 0
  receiver.answer = () => (attempts++ === 0 ? 500 : 204)
  const client = await a2aClient(server.url)
  const message = says({ text: 'touch it', now: true })
  const asked = await client.sendMessage({
    ...message,
    configuration: { ...message.configuration!, taskPushNotificationConfig: configOf(receiver.url) },
  })
  if (!('artifacts' in asked)) throw new Error('no task')
  const { id } = asked
  await receiver.untilReceived((all) => all.length >= 2)
  await server.restart()
  const waiting = await client.getTask({ tenant: '', id })
  const { request_id, kind, tool_uses } = askedIn(waiting)[0]
  const decisions = tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
    return { tool_use_id, input_hash, behavior: 'allow' }
  })
  const done = await say(client, { taskId: id, data: { request_id, kind, decisions } })
  await receiver.untilReceived((all) => statesIn(all).includes('TASK_STATE_COMPLETED'))
  expect([...new Set(statesIn(receiver.received))]).toEqual(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'])
  const last = receiver.received.at(-1)!
  expect(last.headers).toMatchObject({
    'x-a2a-notification-token': 'a-token-of-the-client',
    authorization: 'Bearer the-credentials-of-the-client',
  })
  expect(taskIn(last)).toMatchObject({
    id,
    contextId: done.contextId,
    artifacts: [{ artifactId: 'answer', parts: [{ text: answerIn(done) }] }],
  })
  // The next task of the context is none of its business.
  await say(client, { contextId: done.contextId, text: 'more' })
  const { items } = (await server.call('GET', `/conversations/${done.metadata?.['conversation_id']}/callbacks`)).body
  expect(items).toMatchObject([{ url: receiver.url, enabled: true }])
  expect(new Set(receiver.received.map((one) => taskIn(one).id))).toEqual(new Set([id]))
})

test.each(['JSONRPC', 'HTTP+JSON'] as const)(
  'by %s: configs are created, listed and deleted, and show no secret',
  async (binding) => {
    await using receiver = await startReceiver()
    const client = await a2aClient(server.url, { binding })
    const { id: taskId, contextId } = await say(client, { text: 'touch it' })
    const one = await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId, id: 'one' }))
    expect(one).toMatchObject({ id: 'one', taskId, url: receiver.url, token: '', authentication: undefined })
    await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId, id: 'one' }))
    const other = await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId }))
    const named = { tenant: '', taskId }
    const list = async () =>
      (await client.listTaskPushNotificationConfig({ ...named, pageSize: 0, pageToken: '' })).configs.map(
        ({ id }) => id,
      )
    expect(await list()).toEqual(['one', other.id])
    expect(await client.getTaskPushNotificationConfig({ ...named, id: 'one' })).toEqual(one)
    for (let times = 0; times < 2; times++) await client.deleteTaskPushNotificationConfig({ ...named, id: 'one' })
    expect(await list()).toEqual([other.id])
    await expect(client.getTaskPushNotificationConfig({ ...named, id: 'one' })).rejects.toThrow(/no such/)
    // What waited already is delivered, too; when the task is over, its configs go with the next one.
    await receiver.untilReceived((all) => all.length > 0)
    await client.cancelTask({ tenant: '', id: taskId, metadata: undefined })
    await receiver.untilReceived((all) => statesIn(all).includes('TASK_STATE_CANCELED'))
    const next = await say(client, { contextId, text: 'more' })
    await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId: next.id }))
    expect(await list()).toEqual([])
  },
)

test('an address that callbacks cannot have is refused before the message is posted, and so is a key without rights', async () => {
  const url = `${server.url}/a2a`
  const call = (method: string, params: object, key?: string) =>
    sendRaw(url, { jsonrpc: '2.0', id: 1, method, params }, key === undefined ? {} : { key })
  const said = { messageId: 'refused', contextId: 'refused', role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
  for (const address of [
    'http://169.254.169.254/latest',
    'http://[::1]:1/',
    'ftp://127.0.0.1/',
    'http://a:b@127.0.0.1/',
    'x',
  ]) {
    const configuration = { taskPushNotificationConfig: { url: address } }
    for (const method of ['SendMessage', 'SendStreamingMessage'])
      expect(await call(method, { message: said, configuration }), address).toMatchObject({
        body: { error: { code: -32_602 } },
      })
  }
  const { items } = (await server.call('GET', '/conversations')).body
  expect(items.map(({ external_id }: { external_id?: string }) => external_id)).not.toContain('refused')
  const task = (await call('SendMessage', { message: said })).body.result.task
  const config = { taskId: task.id, url: 'http://127.0.0.1:9/' }
  const keyOf = async (fields: object) => (await server.call('POST', '/keys', { name: 'a test', ...fields })).body.key
  const reader = await keyOf({ scopes: ['read'] })
  expect(await call('CreateTaskPushNotificationConfig', config, reader)).toMatchObject({ status: 403 })
  const stranger = await keyOf({ scopes: ['read', 'write'], user_id: 'eve' })
  for (const method of ['Create', 'Get', 'Delete'])
    expect(await call(`${method}TaskPushNotificationConfig`, { ...config, id: 'x' }, stranger)).toMatchObject({
      body: { error: { code: -32_001 } },
    })
})

test('a config that cannot be put is refused before the message is posted: the conversation has all callbacks already', async () => {
  const client = await a2aClient(server.url)
  const { metadata, contextId } = await say(client, { text: 'Hello' })
  const path = `/conversations/${metadata?.['conversation_id']}`
  const url = 'http://127.0.0.1:9/'
  for (let count = 0; count < MAX_CALLBACKS; count++) await server.call('POST', `${path}/callbacks`, { url })
  const before = (await server.call('GET', path)).body.last_seq
  const message = says({ text: 'Hello', contextId })
  const configuration = { ...message.configuration!, taskPushNotificationConfig: configOf(url) }
  await expect(client.sendMessage({ ...message, configuration })).rejects.toThrow(/at most/)
  expect((await server.call('GET', path)).body.last_seq).toBe(before)
})

test('the config of a task whose message was withdrawn is removed for the next one', async () => {
  const client = await a2aClient(server.url)
  const { id, metadata } = await say(client, { text: 'never stop', now: true })
  const path = `/conversations/${metadata?.['conversation_id']}`
  const { seq, event_id } = (await server.call('POST', `${path}/messages`, { message: 'Hello', run: true })).body
  const ofMessage = configOf('http://127.0.0.1:9/', { taskId: `${metadata?.['conversation_id']}-${seq}` })
  await client.createTaskPushNotificationConfig(ofMessage)
  await server.call('DELETE', `${path}/messages/${event_id}`)
  await client.createTaskPushNotificationConfig(configOf('http://127.0.0.1:9/', { taskId: id }))
  expect((await server.call('GET', `${path}/callbacks`)).body.items).toHaveLength(1)
  await client.cancelTask({ tenant: '', id, metadata: undefined })
})

test.each([
  ['after', 3],
  ['before', 2],
] as const)(
  'a client learns once of what a subagent asks %s the end of the task, and of the end after the decision',
  async (order, count) => {
    await using receiver = await startReceiver()
    const client = await a2aClient(server.url)
    const message = says({ text: 'delegate' })
    const ended = Promise.withResolvers<void>()
    subagentWaits = order === 'after' ? ended.promise : Promise.resolve()
    agentWaits = order === 'after' ? Promise.resolve() : untilAsked()
    const begun = await client.sendMessage({
      ...message,
      configuration: { ...message.configuration!, taskPushNotificationConfig: configOf(receiver.url) },
    })
    if (!('artifacts' in begun)) throw new Error('no task')
    ended.resolve()
    // A notification is JSON as it is sent, which the client of the protocol has not parsed.
    const asked = () =>
      receiver.received.flatMap((one) => taskIn(one).status.message?.parts ?? []).filter(({ data }) => data)
    await receiver.untilReceived(() => asked().length > 0)
    const [
      {
        data: { request_id, kind, tool_uses },
      },
    ] = asked()
    const decisions = tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
      return { tool_use_id, input_hash, behavior: 'deny' }
    })
    await client.sendMessage(says({ taskId: begun.id, data: { request_id, kind, decisions } }))
    await receiver.untilReceived((all) => all.length >= count && statesIn(all).at(-1) === 'TASK_STATE_COMPLETED')
    expect(asked()).toHaveLength(1)
    expect(receiver.received).toHaveLength(count)
  },
)

/** Resolves when somebody is asked who was not when this was called. */
async function untilAsked(): Promise<void> {
  const asked = async () => (await server.call('GET', '/requests')).body.items.length
  const before = await asked()
  await until('the request', async () => (await asked()) > before)
}

test('a config that is put again delivers nothing again, with a message that is sent again, too, and has the new token', async () => {
  await using receiver = await startReceiver()
  const client = await a2aClient(server.url)
  const request = says({ text: 'do it' })
  const configuration = { ...request.configuration!, taskPushNotificationConfig: configOf(receiver.url) }
  const send = async (message: typeof request.message) => {
    const answer = await client.sendMessage({ ...request, message, configuration })
    if (!('artifacts' in answer)) throw new Error('no task')
    return answer
  }
  const task = await send(request.message)
  const path = `/conversations/${task.metadata?.['conversation_id']}`
  // A delivery whose answer is not there yet would be repeated by the config that is put again.
  const untilDelivered = () =>
    until('the end of the deliveries', async () => {
      const [{ cursor }] = (await server.call('GET', `${path}/callbacks`)).body.items
      return cursor >= (await server.call('GET', path)).body.last_seq
    })
  await untilDelivered()
  expect((await send(request.message)).id).toBe(task.id)
  await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId: task.id }))
  const next = await send(says({ text: 'touch it', contextId: task.contextId }).message)
  await untilDelivered()
  const token = 'another-token'
  await client.createTaskPushNotificationConfig(configOf(receiver.url, { taskId: next.id, token }))
  await client.cancelTask({ tenant: '', id: next.id, metadata: undefined })
  await receiver.untilReceived((all) => statesIn(all).includes('TASK_STATE_CANCELED'))
  expect(receiver.received.map((one) => taskIn(one).id)).toEqual([task.id, next.id, next.id])
  expect(receiver.received.at(-1)!.headers).toMatchObject({ 'x-a2a-notification-token': token })
})
