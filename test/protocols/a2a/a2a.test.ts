/** A2A, as its client uses it by both bindings, on a real server. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { TaskState } from '@a2a-js/sdk'
import type { ListTasksRequest, ListTasksResponse, Task } from '@a2a-js/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import type { Binding } from '../../support/a2a.ts'
import { a2aClient, answerIn, askedIn, follow, say, says } from '../../support/a2a.ts'
import { setStageHere } from '../../support/agent.ts'
import { ASKS } from '../../support/asked-question.ts'
import { until } from '../../support/until.ts'

const stage = await setStageHere(({ body }) => turnFor(body), { OPENHANDS_PROTOCOLS: 'a2a' })
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
let failures = 0

const textIn = ({ content }: { content?: unknown }) => (typeof content === 'string' ? content : JSON.stringify(content))

function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = textIn(last ?? {})
  if (last?.role === 'tool' && textIn(messages.find(({ role }) => role === 'user') ?? {}).includes('never stop'))
    return { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 300)}` }
  if (said.includes('touch'))
    return {
      text: 'Now.',
      calls: [...said.matchAll(/touch \w+/g)].map(([command]) => ({ name: 'Bash', arguments: { command } })),
    }
  if (said.includes('which one')) return ASKS
  if (said.includes('flaky') && failures++ === 0)
    return { text: 'torn off '.repeat(20), cut_after: 15, chunk_delay_ms: 60 }
  if (said.includes('never stop')) return { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
  if (said.includes('fail')) return { status: 400, error: { message: 'no such thing' } }
  const all = messages.flatMap((message) => (message.role === 'user' ? [textIn(message)] : []))
  const slowly = said.includes('slowly') && { chunk_delay_ms: 60 }
  return { reasoning: 'A thought.', text: `I know: ${all.join(', ')}.`, ...slowly }
}

beforeAll(async () => {
  const { status } = await server.call('PUT', '/profiles/default', {
    tools: ['Bash', 'AskUserQuestion'],
    llm_config: LLM,
  })
  expect(status).toBe(201)
})

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

const workdirOf = async ({ metadata }: Task): Promise<string> =>
  (await server.call('GET', `/conversations/${metadata?.['conversation_id']}`)).body.workdir

const decisions = (task: Task, behavior: 'allow' | 'deny' = 'allow') =>
  askedIn(task)[0].tool_uses.map(({ tool_use_id, input_hash }: any) => ({ tool_use_id, input_hash, behavior })) // eslint-disable-line typescript/no-explicit-any

describe.each(['JSONRPC', 'HTTP+JSON'] satisfies Binding[])('by %s', (binding) => {
  test('the messages of a context are one conversation, and each begins a task', async () => {
    const client = await a2aClient(server.url, { binding })
    const first = await say(client, { text: 'first' })
    expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(answerIn(first)).toBe('I know: first.')
    const contextId = `order ${binding}`
    const second = await say(client, { text: 'second', contextId })
    const third = await say(client, { text: 'third', contextId })
    expect([second.contextId, third.contextId]).toEqual([contextId, contextId])
    expect(answerIn(third)).toBe('I know: second, third.')
    expect(await client.getTask({ tenant: '', id: second.id })).toEqual(second)
    const withoutHistory = await client.getTask({ tenant: '', id: third.id, historyLength: 0 })
    expect([third.history.length, withoutHistory.history]).toEqual([1, []])
    const { items } = (await server.call('GET', '/conversations')).body
    expect(items.filter((each: { external_id: string }) => each.external_id === contextId)).toHaveLength(1)
  })

  test('a call waits for a decision as data; a text or its absence approves nothing', async () => {
    const client = await a2aClient(server.url, { binding })
    const asked = await say(client, { text: 'touch yes and touch no' })
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(askedIn(asked)).toMatchObject([{ kind: 'permission', tool_uses: [{ name: 'Bash' }, { name: 'Bash' }] }])
    const taskId = asked.id
    const { request_id } = askedIn(asked)[0]
    for (const wrong of [
      { text: 'yes, approved' },
      { text: 'allow', data: { behavior: 'allow' } },
      { data: { request_id, kind: 'permission', decisions: [] } },
      { data: { request_id, kind: 'permission' } },
    ])
      await expect(say(client, { taskId, ...wrong })).rejects.toThrow(/message\.parts/)
    await expect(say(client, { contextId: asked.contextId, text: 'go on' })).rejects.toThrow(/taskId/)
    expect(await client.getTask({ tenant: '', id: taskId })).toEqual(asked)
    const workdir = await workdirOf(asked)
    expect(await exists(join(workdir, 'yes'))).toBe(false)
    const [yes, no] = decisions(asked)
    const half = await say(client, { taskId, data: { request_id, kind: 'permission', decisions: [yes] } })
    expect([half.status?.state, askedIn(half)[0].tool_uses.length]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, 1])
    const rest = { request_id, kind: 'permission', decisions: [{ ...no, behavior: 'deny' }] }
    const done = await say(client, { taskId, data: rest })
    expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect([await exists(join(workdir, 'yes')), await exists(join(workdir, 'no'))]).toEqual([true, false])
    // Before its calls, the agent has said something that is no answer.
    expect(done.history.map(({ parts }) => parts[0]?.content?.value)).toEqual(['touch yes and touch no', 'Now.'])
    expect(answerIn(done)).toMatch(/^Read: /)
    expect(await say(client, { taskId, data: rest })).toEqual(done)
    await expect(say(client, { taskId, data: { ...rest, decisions: [no] } })).rejects.toThrow(/answered before/)
  })

  test('an answer that is sent again does not continue an agent that somebody has stopped since', async () => {
    const client = await a2aClient(server.url, { binding })
    const asked = await say(client, { text: 'touch one, and never stop' })
    const { request_id, kind } = askedIn(asked)[0]
    const answer = { taskId: asked.id, now: true, data: { request_id, kind, decisions: decisions(asked) } }
    const decided = await say(client, answer)
    expect(decided.status?.state).toBe(TaskState.TASK_STATE_WORKING)
    const path = `/conversations/${asked.metadata?.['conversation_id']}`
    await server.call('POST', `${path}/pause`, { interrupt: true })
    expect((await say(client, answer)).status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    expect((await server.call('GET', path)).body.status).toBe('paused')
  })

  test('a text answers a question, once', async () => {
    const client = await a2aClient(server.url, { binding })
    const asked = await say(client, { text: 'which one?' })
    expect(askedIn(asked)).toMatchObject([{ kind: 'question', questions: [{ question: 'Which database?' }] }])
    const answer = { taskId: asked.id, text: 'SQLite', messageId: `answer ${binding}` }
    const done = await say(client, answer)
    expect(answerIn(done)).toContain('SQLite')
    expect(await say(client, answer)).toEqual(done)
    await expect(say(client, { taskId: asked.id, text: 'something else' })).rejects.toThrow(/has ended/)
    // The same words are another message, and a message that is sent late answers no other question.
    const next = await say(client, { text: 'which one?', contextId: asked.contextId })
    await say(client, answer)
    expect(await client.getTask({ tenant: '', id: next.id })).toEqual(next)
    const ofNext = { taskId: asked.id, data: { request_id: askedIn(next)[0].request_id, kind: 'question' } }
    await expect(say(client, { ...ofNext, data: { ...ofNext.data, answers: { '0': 'SQLite' } } })).rejects.toThrow(
      /not asked/,
    )
    expect(answerIn(await say(client, { taskId: next.id, text: 'SQLite' }))).toContain('SQLite')
  })

  test('a message that is sent again is the same task, and another one with its id is refused', async () => {
    const client = await a2aClient(server.url, { binding })
    const message = { text: 'once', messageId: `once ${binding}` }
    const [one, two] = await Promise.all([
      say(client, message),
      until('the task', () => say(client, message).catch(() => {})),
    ])
    expect(two).toEqual(one)
    await expect(say(client, { ...message, text: 'twice' })).rejects.toThrow(/another body/)
    expect(answerIn(await say(client, { text: 'more', contextId: one.contextId }))).toBe('I know: once, more.')
  })

  test('a task that is cancelled is interrupted, also while it waits, and the next message works', async () => {
    const client = await a2aClient(server.url, { binding })
    const working = await say(client, { text: 'never stop', now: true })
    expect(working.status?.state).toBe(TaskState.TASK_STATE_WORKING)
    const busy = say(client, { text: 'and', contextId: working.contextId })
    await expect(busy).rejects.toThrow(/busy/)
    const cancelled = await client.cancelTask({ tenant: '', id: working.id, metadata: undefined })
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    await expect(client.cancelTask({ tenant: '', id: working.id, metadata: undefined })).rejects.toThrow(/has ended/)
    const waiting = await say(client, { text: 'touch never', contextId: working.contextId })
    expect(waiting.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
    const stopped = await client.cancelTask({ tenant: '', id: waiting.id, metadata: undefined })
    expect(stopped.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    const last = await say(client, { text: 'still there?', contextId: working.contextId })
    expect(answerIn(last)).toMatch(/still there\?\.$/)
  })

  test('a failed run is a failed task, which says why', async () => {
    const client = await a2aClient(server.url, { binding })
    const { status, artifacts } = await say(client, { text: 'fail' })
    expect(status?.state).toBe(TaskState.TASK_STATE_FAILED)
    expect(status?.message?.parts[0]?.content?.value).toContain('no such thing')
    expect(artifacts).toEqual([])
  })

  test('a stream begins with the task, grows its answer, and ends with its end; torn text is replaced', async () => {
    const client = await a2aClient(server.url, { binding })
    for (const text of ['slowly', 'flaky']) {
      // What comes to a busy server at once is one piece.
      const task = await until('a stream that grows', async () => {
        failures = 0
        const followed = await follow(client.sendMessageStream(says({ text })))
        return followed.count > 3 && followed.task
      })
      expect(answerIn(task)).toBe(`I know: ${text}.`)
      expect((await client.getTask({ tenant: '', id: task.id })).status).toEqual(task.status)
    }
  })

  test('lists are of the tasks that the key may see, the newest first, in pages', async () => {
    const fields = { name: 'a lister', scopes: ['read', 'write'], user_id: `lister ${binding}` }
    const { key } = (await server.call('POST', '/keys', fields)).body
    const client = await a2aClient(server.url, { binding, key })
    const list = async (more: Partial<ListTasksRequest> = {}) =>
      await client.listTasks({
        tenant: '',
        contextId: '',
        status: 0,
        pageToken: '',
        statusTimestampAfter: undefined,
        ...more,
      })
    expect(await list()).toMatchObject({ tasks: [], nextPageToken: '', totalSize: 0, pageSize: 50 })
    const contextId = 'listed'
    const tasks = []
    for (const text of ['one', 'touch two', 'three'])
      tasks.push(await say(client, { text, contextId }).catch(() => undefined))
    const waiting = tasks[1]!
    expect(tasks[2]).toBeUndefined()
    const other = await say(client, { text: 'other' })
    const idsOf = ({ tasks: all }: ListTasksResponse) => all.map(({ id }) => id)
    const first = await list({ pageSize: 1 })
    expect([idsOf(first), first.totalSize, first.tasks[0]!.artifacts]).toEqual([[other.id], 2, []])
    const second = await list({ pageSize: 1, pageToken: first.nextPageToken })
    expect([idsOf(second), second.nextPageToken]).toEqual([[waiting.id], ''])
    expect(idsOf(await list({ status: TaskState.TASK_STATE_INPUT_REQUIRED }))).toEqual([waiting.id])
    expect(idsOf(await list({ status: TaskState.TASK_STATE_COMPLETED }))).toEqual([other.id])
    const ofContext = await list({ contextId, pageSize: 1 })
    expect([idsOf(ofContext), ofContext.totalSize]).toEqual([[waiting.id], 2])
    const rest = await list({ contextId, pageToken: ofContext.nextPageToken, includeArtifacts: true, historyLength: 0 })
    expect(rest.tasks).toEqual([{ ...tasks[0], history: [] }])
    const withHistory = await list({ contextId, pageToken: ofContext.nextPageToken, historyLength: 5 })
    expect(withHistory.tasks[0]!.history.length).toBe(1)
    expect(ofContext.tasks[0]!.history).toEqual([])
    expect(await list({ contextId: 'no such' })).toMatchObject({ tasks: [], totalSize: 0 })
    for (const wrong of [{ pageSize: 0 }, { pageSize: 101 }, { pageToken: 'x' }, { contextId, pageToken: 'x' }])
      await expect(list(wrong)).rejects.toThrow(/pageSize|page_id|pageToken/)
    const card = await client.getAgentCard()
    expect(card.skills).toMatchObject([{ id: 'default', tags: ['profile'] }])
  })
})
