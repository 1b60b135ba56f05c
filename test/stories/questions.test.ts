/** The agent asks the user: what waits, who may answer, and what is left of it after a kill, a message, a pause. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { connect } from '../support/socket.ts'
import type { SocketClient } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { answer as answerRequest, approve, requestsOf } from './requests.ts'

const DATABASE = {
  question: 'Which database?',
  header: 'Database',
  options: [
    { label: 'PostgreSQL (Recommended)', description: 'A server.' },
    { label: 'SQLite', description: 'A file.' },
  ],
}
const PARTS = {
  question: 'Which parts?',
  header: 'Parts',
  options: ['Tests', 'Docs', 'Code'].map((label) => ({ label, description: '' })),
  multiSelect: true,
}
const asks = (...questions: object[]) => ({ name: 'AskUserQuestion', arguments: { questions } })
const bash = (command: string) => ({ name: 'Bash', arguments: { command } })
const DONE: ScriptedTurn = { text: 'Done.' }

const stage = await setStage({
  replies: [
    { when: 'both', turns: [{ calls: [asks(DATABASE, PARTS)] }, DONE] },
    { when: 'turn', turns: [{ calls: [bash('touch first'), asks(DATABASE), asks(PARTS), bash('touch last')] }, DONE] },
    { when: 'one', turns: [{ calls: [asks(DATABASE)] }, DONE] },
    { turns: [DONE] },
  ],
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

type Pending = {
  request_id: string
  tool_use_ids: string[]
  payload: { questions: { question: string }[] }
}

const call = (method: string, id: string, path = '', body?: unknown) =>
  server.call(method, `/conversations/${id}${path}`, body)
const statusOf = async (id: string): Promise<string> => (await call('GET', id)).body.status
const pending = (id: string): Promise<Pending[]> => requestsOf(server.call, id, 'question')
const post = (id: string, content: string, run = true) =>
  call('POST', id, '/messages', { message: { role: 'user', content }, run })
const answer = (id: string, questionId: string, answers: object) =>
  answerRequest(server.call, id, questionId, { kind: 'question', answers })
const settled = (id: string, status: string) => expect.poll(() => statusOf(id)).toBe(status)
const results = (id: string) => stage.events(id, 'types=ToolResult')

/** Lets the agent work until it waits for an answer. */
async function ask(what: string, fields: object = {}): Promise<{ id: string; asked: Pending[] }> {
  const id = await stage.create({ tools: 'claude', ...fields })
  await post(id, what, false)
  const { body } = await call('POST', id, '/run', { wait: true, timeout: PATIENCE_S })
  expect(body).toEqual({ run_id: expect.any(String), status: 'waiting_for_input' })
  return { id, asked: await pending(id) }
}

test('a question is there after a kill and after a stop, and its first answer is the result of the call', async () => {
  const { id, asked } = await ask('both')
  const { request_id } = asked[0]!
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await server.restart(signal)
    expect(await statusOf(id)).toBe('waiting_for_input')
    expect(await pending(id)).toEqual(asked)
  }
  const listed = await server.call('GET', '/conversations?status=waiting_for_input')
  expect(listed.body.items.map((item: { id: string }) => item.id)).toEqual([id])
  const metrics = await fetch(`${server.url}/metrics`, {
    headers: { authorization: 'Bearer test-master-key-0123456789' },
  })
  expect(await metrics.text()).toContain('agent_server_conversations{status="waiting_for_input"} 1')

  const refusals = [
    await call('POST', id, '/run'),
    await answer(id, id, { '0': 'SQLite' }),
    await answer(id, request_id, { 'Which colour?': 'Red', '0': 'SQLite' }),
    await answer(id, request_id, { '7': 'SQLite' }),
    await answer(id, request_id, { '0': ['SQLite', 'PostgreSQL (Recommended)'] }),
    await answer(id, request_id, { '0': 'SQLite', 'Which database?': 'SQLite' }),
    await answer(id, request_id, { '0': ' ' }),
    await answer(id, request_id, { '0': 1 }),
    await answer(id, request_id, []),
    await answer(id, request_id, {}),
  ]
  expect(refusals.map(({ status, body }) => [status, body.error])).toEqual([
    [409, 'waiting_for_input'],
    [404, 'request_not_found'],
    ...Array.from({ length: 8 }, () => [400, 'invalid_request']),
  ])
  expect(refusals[0]!.body.details.pending).toEqual(asked)
  expect(refusals[2]!.body).toMatchObject({
    message: expect.stringMatching(/key 1 .* is neither the text nor the index of a question/),
    details: { questions: [{ index: 0, question: 'Which database?' }, { index: 1 }] },
  })
  expect(refusals[2]!.body.message).not.toContain('colour')
  expect(refusals[3]!.body.message).toContain('key "7"')

  const first = { 'Which database?': 'Neither: use a "CSV" file', '1': ['Tests', 'Docs', 'Tests'] }
  expect(await answer(id, request_id, first)).toMatchObject({ status: 200, body: { status: 'running', pending: 0 } })
  await settled(id, 'idle')
  await server.restart('SIGKILL')
  expect(await answer(id, request_id, first), 'the same again').toMatchObject({
    status: 200,
    body: { status: 'idle' },
  })
  for (const other of [{ '0': 'SQLite' }, { 'Which colour?': 'Red' }])
    expect(await answer(id, request_id, other)).toMatchObject({ status: 409, body: { error: 'already_answered' } })

  const events = await stage.events(id)
  expect(events.slice(3).map(({ type }) => type)).toEqual([
    'AssistantMessage',
    'ToolUse',
    'RequestOpened',
    'StatusUpdate',
    'RequestAnswered',
    'ToolResult',
    'StatusUpdate',
    'AssistantMessage',
    'Result',
    'StatusUpdate',
  ])
  const answers = { 'Which database?': ['Neither: use a "CSV" file'], 'Which parts?': ['Tests', 'Docs'] }
  expect(events.find(({ type }) => type === 'RequestAnswered')).toMatchObject({
    kind: 'question',
    source: 'user',
    request_id,
    tool_use_ids: asked[0]!.tool_use_ids,
    answer: { answers },
    answered_by: 'user',
  })
  expect(events.find(({ type }) => type === 'RequestOpened')).toMatchObject({
    kind: 'question',
    request_id,
    payload: {
      questions: [
        { header: 'Database', multi_select: false },
        { header: 'Parts', multi_select: true },
      ],
    },
  })
  const page = await readFile(join(import.meta.dirname, '../../docs/requests.md'), 'utf8')
  const [, shownResult = ''] = /^```text\n(.*?)^```$/ms.exec(page)!
  const read = stage.model.requests.at(-1)!.body.messages.find(({ role }) => role === 'tool')
  expect(read).toMatchObject({
    tool_call_id: asked[0]!.tool_use_ids[0],
    // As docs/requests.md shows it.
    content: shownResult.trim().replace('"SQLite"', String.raw`"Neither: use a \"CSV\" file"`),
  })
})

test('an error shows no question to a key that may write, and not read', async () => {
  const { id, asked } = await ask('both')
  const { body } = await server.call('POST', '/keys', { name: 'writer', scopes: ['write'] })
  const key = { authorization: `Bearer ${body.key}` }
  const path = `/conversations/${id}`
  const wrong = { kind: 'question', answers: { 'Which colour?': 'Red' } }
  const refusals = [
    await server.call('POST', `${path}/run`, {}, key),
    await server.call('POST', `${path}/requests/${asked[0]!.request_id}`, wrong, key),
  ]
  expect(refusals.map((refused) => refused.body.error)).toEqual(['waiting_for_input', 'invalid_request'])
  expect(JSON.stringify(refusals)).not.toContain('database')
  await server.call('DELETE', path)
})

test('a kill while the answer comes in leaves the question or its answer, and the call one result', async () => {
  const { id, asked } = await ask('one')
  const { request_id } = asked[0]!
  const coming = answer(id, request_id, { '0': 'SQLite' }).catch(() => undefined)
  await server.restart('SIGKILL')
  await coming
  if ((await statusOf(id)) === 'waiting_for_input') await answer(id, request_id, { '0': 'SQLite' })
  await expect.poll(() => statusOf(id)).toMatch(/idle|paused/)
  expect(await stage.events(id, 'types=RequestAnswered')).toMatchObject([{ kind: 'question' }])
  expect(await results(id)).toMatchObject([{ is_error: false, output: expect.stringContaining('"SQLite"') }])
  expect(await stage.events(id, 'types=Result')).toHaveLength(1)
})

const asker = (socket: SocketClient) => async (frame: object) => {
  const id = `${Math.random()}`
  socket.say({ id, ...frame })
  return await socket.until((each) => each.id === id)
}

test('over a WebSocket the same: the first of two clients answers, the other one learns that, both see it', async () => {
  const id = await stage.create({ tools: 'claude' })
  const firehose = await subscribe(server.url, '/firehose?types=RequestOpened,RequestAnswered')
  const sockets = await Promise.all([1, 2].map(() => connect(server.url, `/conversations/${id}/ws`)))
  const [first, second] = sockets.map(asker)
  await first!({ type: 'message', message: { role: 'user', content: 'one' }, run: true })
  const { request_id } = await sockets[1]!.until(({ type }) => type === 'RequestOpened')
  expect(await first!({ type: 'run' })).toMatchObject({
    error: 'waiting_for_input',
    details: { pending: [{ request_id }] },
  })
  const say = (answers: object, to = request_id) => ({
    type: 'answer',
    request_id: to,
    answer: { kind: 'question', answers },
  })
  expect(await first!(say({ nothing: 'x' }))).toMatchObject({ type: 'problem', error: 'invalid_request' })
  expect(await first!(say({ '0': 'x' }, id))).toMatchObject({ error: 'request_not_found' })
  const outcomes = await Promise.all([first!(say({ '0': 'SQLite' })), second!(say({ '0': 'Oracle' }))])
  expect(new Set(outcomes.map(({ of, error }) => of ?? error))).toEqual(new Set(['answer', 'already_answered']))
  await firehose.until(({ event, data }) => event === 'RequestAnswered' && data.request_id === request_id)
  firehose.close()
  for (const socket of sockets) {
    await socket.until(({ type }) => type === 'Result')
    expect(socket.frames.filter(({ type }) => type === 'RequestAnswered')).toMatchObject([{ request_id }])
    socket.close()
  }
})

async function postTask(id: string, content: string): Promise<string> {
  const runnable = { type: 'AgentRun', message: { role: 'user', content } }
  return (await call('POST', id, '/tasks', { title: content, runnable })).body.id
}

describe('over one kill', () => {
  let ofTurn: { id: string; asked: Pending[] }
  let paused: { id: string; asked: Pending[] }
  let ofTasks: { id: string; task: string; next: string }

  beforeAll(async () => {
    const { id, asked } = (ofTurn = await ask('turn', { confirmation_mode: false }))
    expect(asked.map(({ payload }) => payload.questions[0]!.question)).toEqual(['Which database?', 'Which parts?'])
    expect(await results(id), 'nothing has run').toEqual([])
    expect((await answer(id, asked[1]!.request_id, { '0': 'Docs' })).body).toEqual({
      status: 'waiting_for_input',
      pending: 1,
    })

    paused = await ask('one')
    expect((await call('POST', paused.id, '/pause')).body).toEqual({ status: 'paused' })

    const withTasks = await stage.create({ tools: ['AskUserQuestion'] })
    const task = await postTask(withTasks, 'one')
    await until('the question', async () => (await statusOf(withTasks)) === 'waiting_for_input')
    ofTasks = { id: withTasks, task, next: await postTask(withTasks, 'one') }
    await server.restart('SIGKILL')
  })

  test('all questions of a turn come first; the other calls wait for the last answer', async () => {
    const { id, asked } = ofTurn
    expect(await pending(id)).toEqual([asked[0]])
    expect((await answer(id, asked[0]!.request_id, { '0': 'SQLite' })).body).toEqual({ status: 'running', pending: 0 })
    await settled(id, 'idle')
    expect((await results(id)).map(({ is_error }) => is_error)).toEqual([false, false, false, false])
    const read = stage.model.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
    expect(read.map(({ content }) => String(content))).toEqual([
      expect.not.stringContaining('answered'),
      expect.stringContaining('SQLite'),
      expect.stringContaining('Docs'),
      expect.not.stringContaining('answered'),
    ])
  })

  test('a pause keeps the question: it can be answered meanwhile, and a run waits for it again; interrupt closes it', async () => {
    const { id, asked } = paused
    expect(await pending(id)).toEqual(asked)
    expect((await call('POST', id, '/run', { wait: true, timeout: PATIENCE_S })).body.status).toBe('waiting_for_input')
    await call('POST', id, '/pause')
    expect((await answer(id, asked[0]!.request_id, { '0': 'SQLite' })).body).toEqual({ status: 'paused', pending: 0 })
    expect((await call('POST', id, '/run', { wait: true, timeout: PATIENCE_S })).body).toMatchObject({
      status: 'idle',
      result: { stop_reason: 'completed' },
    })
    expect(await results(id)).toMatchObject([{ is_error: false }])
    expect(await stage.events(id, 'types=RequestOpened')).toMatchObject([{ kind: 'question' }])

    const other = await ask('one')
    await call('POST', other.id, '/pause', { interrupt: true })
    // A pause is answered after two seconds, also if a slow disk does not have the result yet.
    await expect.poll(() => results(other.id)).toMatchObject([{ error_type: 'interrupted' }])
    expect(await pending(other.id)).toEqual([])
  })

  test('a task whose agent asks stays running until the answer, also over a kill; cancelling it closes the question', async () => {
    const { id, task, next } = ofTasks
    const taskStatus = async (task: string) => (await call('GET', id, `/tasks/${task}`)).body.status
    expect([await taskStatus(task), await taskStatus(next)]).toEqual(['running', 'pending'])
    const [question] = await pending(id)
    await answer(id, question!.request_id, { '0': 'SQLite' })
    await expect.poll(() => taskStatus(task)).toBe('completed')
    await expect.poll(() => taskStatus(next)).toBe('running')
    await settled(id, 'waiting_for_input')
    expect((await call('DELETE', id, `/tasks/${next}`)).body.status).toBe('cancelled')
    expect(await statusOf(id)).toBe('cancelled')
    expect((await results(id)).map(({ error_type }) => error_type)).toEqual([undefined, 'interrupted'])
    expect((await stage.events(id, 'types=Result')).map(({ stop_reason }) => stop_reason)).toEqual([
      'completed',
      'cancelled',
    ])
  })
})

test.each([true, false])('a message with run: %s replaces the answer', async (run) => {
  const { id, asked } = await ask('turn')
  expect((await post(id, 'Forget it.', run)).status).toBe(202)
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([
    { error_type: 'rejected', output: expect.stringContaining('did not run') },
    { error_type: 'rejected', output: expect.stringContaining('wrote a message instead of answering') },
    { error_type: 'rejected', output: expect.stringContaining('wrote a message instead of answering') },
    { error_type: 'rejected', output: expect.stringContaining('did not run') },
  ])
  const reasons = (await stage.events(id, 'types=Result')).map(({ stop_reason }) => stop_reason)
  expect(reasons).toEqual(run ? ['superseded', 'completed'] : ['superseded'])
  expect(await pending(id)).toEqual([])
  const late = await answer(id, asked[0]!.request_id, { '0': 'SQLite' })
  expect(late).toMatchObject({ status: 409, body: { error: 'request_closed' } })
})

test('reject ends the run without the model; a deleted conversation has no questions', async () => {
  const { id } = await ask('one')
  const requests = stage.model.requests.length
  expect((await call('POST', id, '/reject', { reason: 'not now' })).body).toEqual({ status: 'idle', pending: 0 })
  expect(await results(id)).toMatchObject([
    { error_type: 'rejected', output: 'The user refused to answer the question: not now' },
  ])
  expect(await stage.events(id, 'types=Result')).toMatchObject([{ stop_reason: 'rejected' }])
  expect(stage.model.requests).toHaveLength(requests)
  expect((await call('POST', id, '/reject')).body.error).toBe('nothing_pending')

  const { id: deleted, asked } = await ask('one')
  expect((await call('DELETE', deleted)).status).toBe(204)
  expect((await answer(deleted, asked[0]!.request_id, { '0': 'x' })).status).toBe(410)
  expect((await call('GET', deleted, '/requests')).status).toBe(410)
})

test('a question needs no permission in any mode; what else the turn does is decided before it is asked', async () => {
  for (const fields of [{ permission_mode: 'plan' }, { permission_mode: 'deny' }, { confirmation_mode: true }])
    await ask('one', fields)
  const id = await stage.create({ tools: 'claude', confirmation_mode: true })
  await post(id, 'turn')
  await settled(id, 'waiting_for_confirmation')
  expect(await pending(id)).toEqual([])
  const [request] = await requestsOf(server.call, id, 'permission')
  expect(request.payload.tool_uses.map(({ name }: { name: string }) => name)).toEqual(['Bash', 'Bash'])
  await approve(server.call, id, request.request_id)
  await settled(id, 'waiting_for_input')
  for (const { request_id } of await pending(id)) await answer(id, request_id, { '0': 'yes' })
  await settled(id, 'idle')
  expect((await results(id)).map(({ is_error }) => is_error)).toEqual([false, false, false, false])
})

test('a rule can deny questions, and secrets are hidden in questions and answers', async () => {
  const id = await stage.create({ tools: 'claude', disallowed_tools: ['AskUserQuestion'] })
  await post(id, 'one')
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([{ error_type: 'denied' }])

  const { id: other, asked } = await ask('one', { secrets: { TOKEN: 'Which database' } })
  expect(asked[0]!.payload.questions[0]!.question).toBe('<secret:TOKEN>?')
  await call('PUT', other, '/secrets', { secrets: { PASSWORD: 'swordfish' } })
  await answer(other, asked[0]!.request_id, { '<secret:TOKEN>?': 'it is swordfish' })
  await settled(other, 'idle')
  const events = JSON.stringify(await stage.events(other, 'types=RequestAnswered,ToolResult'))
  expect(events).toContain('<secret:PASSWORD>')
  expect(events).not.toMatch(/swordfish|Which database/)
})

test('a rule that asks puts an approval before the question; the question is the one that was approved', async () => {
  const id = await stage.create({ tools: 'claude' })
  await call('PUT', id, '/permission-rules', { allow: [], ask: ['AskUserQuestion'], deny: [] })
  await post(id, 'one')
  await settled(id, 'waiting_for_confirmation')
  expect(await pending(id)).toEqual([])
  const [{ request_id, payload }] = await requestsOf(server.call, id, 'permission')
  const [{ tool_use_id, input_hash }] = payload.tool_uses
  const updated_input = { questions: [{ ...DATABASE, question: 'Which of these databases?' }] }
  const decisions = [{ tool_use_id, input_hash, behavior: 'allow', updated_input }]
  const decided = await answerRequest(server.call, id, request_id, { kind: 'permission', decisions })
  expect(decided.status).toBe(200)
  await settled(id, 'waiting_for_input')
  const [asked] = await pending(id)
  expect(asked!.payload.questions.map(({ question }) => question)).toEqual(['Which of these databases?'])
  await answer(id, asked!.request_id, { '0': 'SQLite' })
  await settled(id, 'idle')
  expect(await results(id)).toMatchObject([
    { is_error: false, output: expect.stringContaining('"Which of these databases?"="SQLite"') },
  ])
})
