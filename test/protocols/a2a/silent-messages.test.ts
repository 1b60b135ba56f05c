/** Tasks of conversations whose first message has started no run: it was only stored, or another request has started the agent. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendRaw } from '../../support/a2a.ts'
import { setStageHere } from '../../support/agent.ts'
import { until } from '../../support/until.ts'

const stage = await setStageHere(
  ({ body: { messages } }) => {
    const said = messages.flatMap(({ role, content }) => (role === 'user' ? [JSON.stringify(content)] : [])).join(' ')
    if (said.includes('slowly') && !said.includes('hurry'))
      return { text: 'and so on '.repeat(400), chunk_delay_ms: 60 }
    return { text: `Read: ${said}` }
  },
  { OPENHANDS_PROTOCOLS: 'a2a' },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await server.call('PUT', '/profiles/default', { llm_config })
})

async function create(fields: object): Promise<{ id: string; contextId: string }> {
  const contextId = crypto.randomUUID()
  const { body } = await server.call('POST', '/conversations', {
    profile: 'default',
    external_id: contextId,
    ...fields,
  })
  return { id: body.id, contextId }
}

const get = async (path: string) => (await sendRaw(`${server.url}/a2a/v1${path}`, undefined, { method: 'GET' })).body
const tasksOf = async (contextId: string) => (await get(`/tasks?contextId=${contextId}&includeArtifacts=true`)).tasks
const send = async (more: object) => {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'from A2A' }], ...more }
  return (await sendRaw(`${server.url}/a2a/v1/message:send`, { message })).body.task
}

const post = async (id: string, message: string, run: boolean) =>
  await server.call('POST', `/conversations/${id}/messages`, { message, run })

const isIdle = (id: string) =>
  until('the agent rests', async () => (await server.call('GET', `/conversations/${id}`)).body.status === 'idle')

const COMPLETED = { status: { state: 'TASK_STATE_COMPLETED' } }

test('messages that are only stored are one submitted task, until a message starts the run that reads them', async () => {
  const { id, contextId } = await create({})
  await post(id, 'one', false)
  await post(id, 'two', false)
  const [task, ...others] = await tasksOf(contextId)
  expect([task, others]).toMatchObject([{ contextId, status: { state: 'TASK_STATE_SUBMITTED' } }, []])
  expect((await get(`/tasks/${task.id}`)).history).toMatchObject([
    { parts: [{ text: 'one' }] },
    { parts: [{ text: 'two' }] },
  ])
  const { tasks: listed } = await get('/tasks')
  expect(listed.map((each: { id: string }) => each.id)).toContain(task.id)
  const continued = await send({ contextId, taskId: task.id })
  expect(continued).toMatchObject({
    ...COMPLETED,
    artifacts: [{ parts: [{ text: expect.stringMatching(/one.*two.*from A2A/) }] }],
  })
  expect(await tasksOf(contextId)).toMatchObject([{ id: continued.id }])
})

test('a conversation that another client began has a task for its first message, and one for each later run', async () => {
  const { id, contextId } = await create({ initial_message: 'from REST', run: true })
  await isIdle(id)
  const [first] = await tasksOf(contextId)
  expect(first).toMatchObject({
    ...COMPLETED,
    artifacts: [{ parts: [{ text: expect.stringContaining('from REST') }] }],
  })
  const second = await send({ contextId })
  expect(await tasksOf(contextId)).toMatchObject([{ id: second.id }, { id: first.id }])
  expect(await get(`/tasks/${first.id}`)).toMatchObject({ ...COMPLETED, history: [{ parts: [{ text: 'from REST' }] }] })
})

test('a message to the agent of such a task is a part of it, and the task can be cancelled', async () => {
  const { id, contextId } = await create({ initial_message: 'slowly', run: true })
  await until('it works', async () => (await tasksOf(contextId))[0]?.status.state === 'TASK_STATE_WORKING')
  const [{ id: taskId }] = await tasksOf(contextId)
  await post(id, 'another', true)
  expect(await tasksOf(contextId)).toMatchObject([{ id: taskId, status: { state: 'TASK_STATE_WORKING' } }])
  const { body } = await sendRaw(`${server.url}/a2a/v1/tasks/${taskId}:cancel`, {})
  expect(body).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_CANCELED' } })
})

test('a later message that is only stored begins no task', async () => {
  const { id, contextId } = await create({ initial_message: 'from REST', run: true })
  await isIdle(id)
  await post(id, 'later', false)
  const [first, ...others] = await tasksOf(contextId)
  expect(others).toEqual([])
  const { items } = (await server.call('GET', `/conversations/${id}/events?types=UserMessage`)).body
  expect((await get(`/tasks/${id}-${items[1].seq}`)).error).toMatchObject({ code: 404 })
  expect(await get(`/tasks/${first.id}`)).toMatchObject(COMPLETED)
})

test('a message whose messageId is the client_message_id of a stored message is that message, and begins no other task', async () => {
  const { id, contextId } = await create({})
  const message = { message: 'once', run: true, client_message_id: 'once' }
  const { body: posted } = await server.call('POST', `/conversations/${id}/messages`, message)
  await isIdle(id)
  const again = { contextId, messageId: 'once', parts: [{ text: 'once' }] }
  const task = await send(again)
  expect(task).toMatchObject({ ...COMPLETED, history: [{ messageId: 'once' }] })
  expect(task.id).toBe(`${id}-${posted.seq}`)
  const refused = await sendRaw(`${server.url}/a2a/v1/message:send`, {
    message: { ...again, role: 'ROLE_USER', parts: [{ text: 'twice' }] },
  })
  expect(refused).toMatchObject({ status: 409, body: { error: { status: 'ABORTED' } } })
  // What A2A has sent is known to other clients.
  const { history } = await send({ contextId, messageId: 'more', parts: [{ text: 'more' }] })
  expect(history).toMatchObject([{ messageId: 'more' }])
  const known = { ...message, message: 'more', client_message_id: 'more' }
  expect((await server.call('POST', `/conversations/${id}/messages`, known)).status).toBe(200)
  expect(await tasksOf(contextId)).toHaveLength(2)
})

test('a message that continues a task is known to other clients by its messageId', async () => {
  const { id, contextId } = await create({})
  await post(id, 'one', false)
  const [{ id: taskId }] = await tasksOf(contextId)
  await send({ contextId, taskId, messageId: 'continued', parts: [{ text: 'go on' }] })
  const known = { message: 'go on', run: true, client_message_id: 'continued' }
  expect(await server.call('POST', `/conversations/${id}/messages`, known)).toMatchObject({ status: 200 })
})
