import { afterAll, expect, test } from 'vitest'
import type { Process } from '../../src/contract/values/command.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { call, realShells, tool } from '../conversations/fixtures.ts'
import { connectAs } from '../support/socket.ts'
import { createPlanner, task } from '../support/subagents.ts'
import { KEY, expectProblem, setHttp } from './fixtures.ts'

const http = await setHttp({ deps: { createShells: realShells() } })
afterAll(() => http[Symbol.asyncDispose]())

async function keyFor(scopes: readonly string[]): Promise<Record<string, string>> {
  const { body } = await http.call('POST', '/keys', { name: 'a client', scopes })
  return { authorization: `Bearer ${body.key}` }
}

const lastSeq = async (id: string): Promise<number> => (await http.call('GET', `/conversations/${id}`)).body.last_seq

const post = async (id: string, message: string) =>
  await http.call('POST', `/conversations/${id}/messages`, { message })

test('a rewind needs write, its files the scope files, and force the scope approve', async () => {
  const id = await http.create()
  await post(id, 'one')
  const write = await keyFor(['write'])
  const request = { to_seq: 1, last_seq: await lastSeq(id) }
  const ask = (body: object, key: Record<string, string>) => http.call('POST', `/conversations/${id}/rewind`, body, key)
  expectProblem(await ask(request, await keyFor(['read'])), 403, 'forbidden')
  const withFiles = await ask({ ...request, files: true }, write)
  expect(withFiles.body.details).toEqual({ missing_scopes: ['files'] })
  const forced = await ask({ ...request, force: true }, write)
  expect(forced.body.details).toEqual({ missing_scopes: ['approve'] })
  const { status, body } = await ask(request, write)
  expect(status).toBe(200)
  expect(body).not.toHaveProperty('processes')
})

test('the list of events has all of them, and with active=true those that hold', async () => {
  const id = await http.create()
  await post(id, 'one')
  const end = await lastSeq(id)
  await post(id, 'two')
  const { body } = await http.call('POST', `/conversations/${id}/rewind`, { to_seq: end, last_seq: end + 1 })
  await post(id, 'three')
  const seqs = async (query: string) =>
    (await http.call('GET', `/conversations/${id}/events?${query}`)).body.items.map(({ seq }: { seq: number }) => seq)
  expect(await seqs('after_seq=1')).toEqual([end, end + 1, body.seq, body.seq + 1])
  expect(await seqs('after_seq=1&active=true')).toEqual([end, body.seq, body.seq + 1])
  // A page is not empty because what it would have was rewound.
  expect(await seqs(`before_seq=${body.seq}&active=true&order=desc&limit=1`)).toEqual([end])
  const { by } = (await http.call('GET', `/conversations/${id}/events/${body.event_id}`)).body
  expect(by).toBeUndefined()
})

test('a shell ends with its variables, unless a process in the background is in it', async () => {
  const id = await http.create()
  const run = async (command: string, session_id: string) =>
    (await http.call('POST', `/conversations/${id}/commands`, { command, session_id })).body
  await run('export WORD=gone', 'plain')
  await run('export WORD=kept; sleep 1000 &', 'busy')
  const processes = async (): Promise<number[]> =>
    (await http.call('GET', `/conversations/${id}/processes`)).body.items.map(({ pid }: Process) => pid)
  const before = await processes()
  expect(before.length).toBeGreaterThan(0)
  await http.call('POST', `/conversations/${id}/rewind`, { to_seq: 1, last_seq: await lastSeq(id) })
  expect((await run('echo "[$WORD]"', 'plain')).stdout).toBe('[]\n')
  expect((await run('echo "[$WORD]"', 'busy')).stdout).toBe('[kept]\n')
  expect(await processes()).toEqual(before)
})

test('a client that posts behind a rewind it does not know gets a 409, over HTTP and over a WebSocket', async () => {
  const id = await http.create()
  await post(id, 'one')
  const known = await lastSeq(id)
  await http.call('POST', `/conversations/${id}/rewind`, { to_seq: 1, last_seq: known })
  const body = { message: 'an answer to what is gone', run: true, after_seq: known }
  expectProblem(await http.call('POST', `/conversations/${id}/messages`, body), 409, 'conversation_changed')
  const runnable = { type: 'AgentRun', message: 'an answer to what is gone' }
  const task = { title: 'late', runnable, after_seq: known }
  const before = await lastSeq(id)
  expectProblem(await http.call('POST', `/conversations/${id}/tasks`, task), 409, 'conversation_changed')
  const config = { title: 'late', after_seq: known }
  expectProblem(await http.call('PUT', `/conversations/${id}/config`, config), 409, 'conversation_changed')
  expect(await lastSeq(id)).toBe(before)
  expect((await http.call('PUT', `/conversations/${id}/config`, { ...config, after_seq: before })).status).toBe(200)
  const socket = await connectAs(await http.listen(), `/conversations/${id}/ws`, {
    headers: { authorization: `Bearer ${KEY}` },
  })
  socket.say({ type: 'message', id: 'a', ...body })
  socket.say({ type: 'run', id: 'b', after_seq: known })
  socket.say({ type: 'task', id: 'c', ...task })
  await socket.until(({ id: answered }) => answered === 'c')
  const codes = socket.frames.filter(({ type }) => type === 'problem').map(({ error }) => error)
  expect(codes).toEqual(['conversation_changed', 'conversation_changed', 'conversation_changed'])
  socket.close()
  const { status } = await http.call('POST', `/conversations/${id}/messages`, { ...body, after_seq: await lastSeq(id) })
  expect(status).toBe(202)
})

test('files do not go back while the agent of another conversation works in the directory, or a subagent of it', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const planner = createPlanner()
  planner.plan = {
    'work alone': [{ calls: [call('Wait')] }, { text: 'Done.' }],
    'start it': [{ calls: [task('wait long', { run_in_background: true })] }, { text: 'Begun.' }],
    'wait long': [{ calls: [call('Wait')] }, { text: 'Done.' }],
  }
  const wait = tool('Wait', async () => {
    await released
    return { output: 'waited' }
  })
  await using own = await setHttp({
    script: planner.script,
    deps: { createTools: (names, { subagents }) => [wait, ...(names.includes('Task') ? [createTask(subagents)] : [])] },
  })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const id = await own.create({ user_id: 'one' })
  const { workdir } = (await own.call('GET', `/conversations/${id}`)).body
  const { body: created } = await own.call('POST', '/keys', { name: 'one', scopes: ['write', 'files'], user_id: 'one' })
  const rewind = async (key?: Record<string, string>) =>
    await own.call('POST', `/conversations/${id}/rewind`, { to_seq: 1, last_seq: 1, files: true }, key)
  for (const message of ['work alone', 'start it']) {
    const other = await own.create({ user_id: 'two', workdir, agents })
    await own.call('POST', `/conversations/${other}/messages`, { message, run: true })
    const status = message === 'start it' ? 'idle' : 'running'
    await expect.poll(async () => (await own.call('GET', `/conversations/${other}`)).body).toMatchObject({ status })
    const refusal = await rewind()
    expectProblem(refusal, 409, 'workdir_in_use')
    expect(refusal.body.details).toEqual({ conversation_id: other })
    const ofUser = await rewind({ authorization: `Bearer ${created.key}` })
    expectProblem(ofUser, 409, 'workdir_in_use')
    expect(ofUser.body.details).toBeUndefined()
    await own.call('DELETE', `/conversations/${other}`)
  }
  release()
  expectProblem(await rewind(), 404, 'snapshot_not_found')
})
