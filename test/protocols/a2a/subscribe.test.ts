/** Subscribing to a task of A2A: on another connection, after a lost one, and after a restart or a kill of the server. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TaskState } from '@a2a-js/sdk'
import type { Task } from '@a2a-js/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { a2aClient, answerIn, askedIn, follow, say, says } from '../../support/a2a.ts'
import { bash, setStage } from '../../support/agent.ts'
import { task } from '../../support/subagents.ts'
import { until } from '../../support/until.ts'

const inBackground = task('write', { run_in_background: true, description: 'a file' })
const stage = await setStage(
  ({ body: { messages } }) => {
    const said = JSON.stringify(messages.at(-1)?.content)
    if (messages.at(-1)?.role === 'tool') return { text: 'It is written, once.', chunk_delay_ms: 60 }
    if (said.includes('delegate')) return { calls: [inBackground] }
    if (said.includes('write')) return bash('echo line >> made')
    if (said.includes('never stop')) return { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
    return { text: 'one two three four five six seven eight', chunk_delay_ms: 60 }
  },
  { env: { OPENHANDS_PROTOCOLS: 'a2a' } },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await server.call('PUT', '/profiles/default', { tools: ['Bash'], agents, llm_config })
})

const hasText = (words: string) => (task: Parameters<typeof answerIn>[0]) => answerIn(task).includes(words)

function approvalOf(asked: Task) {
  const { request_id, kind, tool_uses } = askedIn(asked)[0]
  const decisions = tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
    return { tool_use_id, input_hash, behavior: 'allow' }
  })
  return { request_id, kind, decisions }
}

test('a client that has lost its stream subscribes, and has the same task as one that stayed', async () => {
  const client = await a2aClient(server.url)
  // The task may have ended before the client is back, and what comes to a busy server at once is one piece.
  const task = await until('a subscriber that comes in time', async () => {
    const torn = await follow(client.sendMessageStream(says({ text: 'count' })), hasText('two'))
    expect(torn.task.status?.state).toBe(TaskState.TASK_STATE_WORKING)
    const rest = await follow(client.resubscribeTask({ tenant: '', id: torn.task.id })).catch(() => undefined)
    return rest !== undefined && rest.count > 2 && rest.task
  })
  expect(answerIn(task)).toBe('one two three four five six seven eight')
  const read = await client.getTask({ tenant: '', id: task.id })
  expect([task.status, task.history]).toEqual([read.status, read.history])
  await expect(follow(client.resubscribeTask({ tenant: '', id: task.id }))).rejects.toThrow(/has ended/)
})

test('a subscriber stays while the task needs input, and sees the decision of another client, after a kill, too', async () => {
  const client = await a2aClient(server.url)
  const { task: asked } = await follow(client.sendMessageStream(says({ text: 'write' })))
  expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
  await server.restart('SIGKILL')
  const { id } = asked
  expect(await client.getTask({ tenant: '', id })).toEqual(asked)
  const states = new Set<TaskState | undefined>()
  const begun = Promise.withResolvers<void>()
  const subscribed = follow(client.resubscribeTask({ tenant: '', id }), ({ status }) => {
    states.add(status?.state)
    begun.resolve()
    return false
  })
  await begun.promise
  const decided = approvalOf(asked)
  const [done, { task }] = await Promise.all([say(client, { taskId: id, data: decided }), subscribed])
  expect([...states]).toEqual([
    TaskState.TASK_STATE_INPUT_REQUIRED,
    TaskState.TASK_STATE_WORKING,
    TaskState.TASK_STATE_COMPLETED,
  ])
  expect([answerIn(task), answerIn(done)]).toEqual(['It is written, once.', 'It is written, once.'])
  expect(await say(client, { taskId: id, data: decided })).toEqual(done)
  const { workdir } = (await server.call('GET', `/conversations/${done.metadata?.['conversation_id']}`)).body
  expect(await readFile(join(workdir, 'made'), 'utf8')).toBe('line\n')
})

test('a task that a kill has ended says so, and its context can be used', async () => {
  const client = await a2aClient(server.url)
  const torn = await follow(client.sendMessageStream(says({ text: 'never stop' })), hasText('and so on and'))
  const { id, contextId } = torn.task
  await server.restart('SIGKILL')
  const { status } = await client.getTask({ tenant: '', id })
  expect([status?.state, status?.message?.parts[0]?.content?.value]).toEqual([
    TaskState.TASK_STATE_FAILED,
    expect.stringContaining('server_restart'),
  ])
  expect(answerIn(await say(client, { contextId, text: 'count' }))).toMatch(/^one two/)
})

const untilTask = async (client: Awaited<ReturnType<typeof a2aClient>>, id: string, isIt: (found: Task) => boolean) =>
  await until('the task', async () => {
    const found = await client.getTask({ tenant: '', id })
    return isIt(found) && found
  })

test('what a subagent asks after the end of the task is answered or cancelled with it, and so is the run that reads its result', async () => {
  const client = await a2aClient(server.url)
  const begin = async () => {
    const { id } = await say(client, { text: 'delegate' })
    return await untilTask(client, id, ({ status }) => status?.state === TaskState.TASK_STATE_INPUT_REQUIRED)
  }
  const asked = await begin()
  const { id, contextId } = asked
  await expect(say(client, { contextId, text: 'count' })).rejects.toThrow(/taskId/)
  await say(client, { taskId: id, data: approvalOf(asked) })
  const done = await untilTask(
    client,
    id,
    (found) => found.status?.state === TaskState.TASK_STATE_COMPLETED && answerIn(found).startsWith('one'),
  )
  const next = await say(client, { contextId, text: 'count' })
  expect(next.id).not.toBe(id)
  expect((await client.getTask({ tenant: '', id })).status).toEqual(done.status)

  const waiting = await begin()
  await client.cancelTask({ tenant: '', id: waiting.id, metadata: undefined })
  expect(askedIn(await client.getTask({ tenant: '', id: waiting.id }))).toEqual([])
  expect(answerIn(await say(client, { contextId: waiting.contextId, text: 'count' }))).toMatch(/^one two/)
})

test('a task that was paused while it waits still needs input, and works with the run that executes its call', async () => {
  const client = await a2aClient(server.url)
  const asked = await say(client, { text: 'write' })
  const { id } = asked
  const path = `/conversations/${asked.metadata?.['conversation_id']}`
  await server.call('POST', `${path}/pause`, { interrupt: false })
  expect((await client.getTask({ tenant: '', id })).status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
  const { request_id, ...answer } = approvalOf(asked)
  await server.call('POST', `${path}/requests/${request_id}`, answer)
  expect((await client.getTask({ tenant: '', id })).status?.state).toBe(TaskState.TASK_STATE_CANCELED)
  await server.call('POST', `${path}/run`, {})
  const done = await untilTask(client, id, ({ status }) => status?.state === TaskState.TASK_STATE_COMPLETED)
  expect(answerIn(done)).toBe('It is written, once.')
})

const POINTS = [1, 2, 3, 4, 5, 6, 7, 8]

/** Begins a task in a context of its own for each point, and leaves its stream at that event. */
const beginAndLeave = (text: string, onLeave?: (left: number) => Promise<void>) => {
  let left = 0
  return Promise.all(
    POINTS.map(async (point) => {
      const client = await a2aClient(server.url)
      const message = says({ text, messageId: crypto.randomUUID() })
      let count = 0
      const stream = follow(client.sendMessageStream(message), () => ++count === point)
      await stream.catch(() => {})
      await onLeave?.(++left)
      return { client, message }
    }),
  )
}

test('wherever a stream is cut, the same message again is the same task, and has all of it', async () => {
  const cutStreams = await beginAndLeave('count')
  for (const { client, message } of cutStreams) {
    const { task } = await follow(client.sendMessageStream(message))
    expect(answerIn(task)).toBe('one two three four five six seven eight')
    const read = await client.getTask({ tenant: '', id: task.id })
    expect([task.status, answerIn(read)]).toEqual([read.status, answerIn(task)])
    const { tasks } = await client.listTasks({
      tenant: '',
      contextId: task.contextId,
      status: 0,
      pageToken: '',
      statusTimestampAfter: undefined,
    })
    expect(tasks.map(({ id }) => id)).toEqual([task.id])
  }
})

test('wherever a kill ends a stream, a client that comes back has what is stored, and its context can be used', async () => {
  let restarted: Promise<void> | undefined
  const killed = await beginAndLeave('count', async (left) => {
    if (left === 3) restarted = server.restart('SIGKILL')
  })
  await restarted
  for (const { client, message } of killed) {
    const { task } = await follow(client.sendMessageStream(message))
    const read = await client.getTask({ tenant: '', id: task.id })
    expect([task.status, answerIn(task)]).toEqual([read.status, answerIn(read)])
    expect(answerIn(await say(client, { contextId: task.contextId, text: 'count' }))).toMatch(/^one two/)
  }
})
