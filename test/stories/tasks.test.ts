/** Tasks as a client has them: posted, followed on the stream, cancelled, and there again after the server was killed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { subscribe } from '../support/stream.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

const command = (text: string, more = {}) => ({ type: 'Command', command: text, ...more })
const agentRun = (content: string) => ({ type: 'AgentRun', message: { role: 'user', content } })

async function post({ server }: Stage, id: string, title: string, runnable: object) {
  const answer = await server.call('POST', `/conversations/${id}/tasks`, { title, runnable })
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  expect(answer.headers.get('location')).toBe(`/conversations/${id}/tasks/${answer.body.id}`)
  expect(answer.body).toMatchObject({
    title,
    status: 'pending',
    runnable: { type: (runnable as { type: string }).type },
  })
  return answer.body.id as string
}

const look = async ({ server }: Stage, id: string, taskId: string) =>
  (await server.call('GET', `/conversations/${id}/tasks/${taskId}`)).body

const untilOver = async (stage: Stage, id: string, taskId: string) => {
  await expect.poll(async () => (await look(stage, id, taskId)).status).not.toMatch(/pending|running/)
  return await look(stage, id, taskId)
}

test('a Ticker needs no more than its type; its updates come on the stream', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create()
  const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream?types=TaskUpdate`)
  const task = await post(stage, id, 'Tickety Tock!', { type: 'Ticker' })
  await stream.until(({ data }) => data.progress?.done === 1)
  expect(stream.frames.map(({ data }) => data.status).slice(0, 3)).toEqual(['pending', 'running', 'running'])
  expect(stream.frames[0]!.data).toMatchObject({ runnable: { type: 'Ticker', interval: 1, count: 10 } })
  const { status, body } = await stage.server.call('DELETE', `/conversations/${id}/tasks/${task}`)
  await stream.until(({ data }) => data.status === 'cancelled')
  // On a slow machine more than one second may have passed.
  const ticks = stream.frames.findLast(({ data }) => data.status === 'running')?.data.progress.done
  expect({ status, body }).toMatchObject({ status: 200, body: { status: 'cancelled', result: { ticks } } })
  stream.close()
})

test('commands run in parallel with the agent and each other, each in a new shell; a cancelled one ends with all it started', async () => {
  await using stage = await setStage([bash('sleep 1000'), { text: 'Done.' }], shared)
  const id = await stage.create({ secrets: { TOKEN: 'a-secret-of-this-story' } })
  const agent = await post(stage, id, 'the agent', agentRun('go'))
  const slow = await post(stage, id, 'slow', command('(while :; do echo >> beats; sleep 0.02; done) & wait'))
  const quick = await post(stage, id, 'quick', command('export HERE=1; cd /; echo "$TOKEN"; echo oh >&2; exit 3'))
  expect(await untilOver(stage, id, quick)).toMatchObject({
    status: 'completed',
    result: { type: 'Command', exit_code: 3, stdout: '<secret:TOKEN>\n', stderr: 'oh\n', timed_out: false },
  })
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  const fresh = await untilOver(stage, id, await post(stage, id, 'fresh', command('echo "[$HERE]"; pwd')))
  expect(fresh).toMatchObject({ status: 'completed', result: { stdout: `[]\n${workdir}\n` } })
  const late = await untilOver(stage, id, await post(stage, id, 'late', command('sleep 1000', { timeout: 0.2 })))
  expect(late).toMatchObject({
    status: 'error',
    result: { timed_out: true, killed_by: 'timeout', exit_code: null },
    message: expect.stringContaining('0.2 s'),
  })

  const beats = async (name = 'beats') => (await readFile(join(workdir, name), 'utf8').catch(() => '')).length
  await expect.poll(() => beats()).toBeGreaterThan(1)
  const cancelled = await stage.server.call('DELETE', `/conversations/${id}/tasks/${slow}`)
  expect(cancelled.body).toMatchObject({ status: 'cancelled', result: { type: 'Command' } })
  expect((await stage.server.call('GET', `/conversations/${id}`)).body.status, 'the agent is left alone').toBe(
    'running',
  )
  const beaten = await beats()
  // Another one, which began later, goes on.
  const other = await post(stage, id, 'other', command('while :; do echo >> others; sleep 0.02; done'))
  await expect.poll(() => beats('others')).toBeGreaterThan(5)
  expect(await beats()).toBe(beaten)
  expect((await stage.server.call('DELETE', `/conversations/${id}/tasks/${other}`)).body.status).toBe('cancelled')

  expect((await stage.server.call('DELETE', `/conversations/${id}/tasks/${agent}`)).body.status).toBe('cancelled')
  expect((await stage.server.call('GET', `/conversations/${id}`)).body.status).toBe('cancelled')
})

test('a killed server: the agent’s task is held with its run, a command is reported as lost, waiting tasks continue', async () => {
  const script = [bash('sleep 1000'), { text: 'First.' }, { text: 'Second.' }]
  await using stage = await setStage(script, shared)
  const id = await stage.create()
  const first = await post(stage, id, 'first', agentRun('go'))
  const second = await post(stage, id, 'second', agentRun('and then'))
  const lost = await post(stage, id, 'lost', command('echo begun > lost; sleep 1000'))
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  await expect.poll(() => readFile(join(workdir, 'lost'), 'utf8').catch(() => '')).toBe('begun\n')
  await expect.poll(async () => (await stage.events(id, 'types=ToolUse')).length).toBe(1)
  await stage.server.restart('SIGKILL')

  expect(await look(stage, id, lost)).toMatchObject({ status: 'error', message: expect.stringContaining('not known') })
  expect(await look(stage, id, first)).toMatchObject({ status: 'running' })
  expect(await look(stage, id, second)).toMatchObject({ status: 'pending' })
  expect((await stage.server.call('POST', `/conversations/${id}/run`)).status).toBe(202)
  expect(await untilOver(stage, id, first)).toMatchObject({ status: 'completed', result: { final_text: 'First.' } })
  expect(await untilOver(stage, id, second)).toMatchObject({ status: 'completed', result: { final_text: 'Second.' } })
  const { items } = (await stage.server.call('GET', `/conversations/${id}/tasks?status=completed`)).body
  expect(items.map((task: { title: string }) => task.title)).toEqual(['second', 'first'])
})

test('a stopped server ends its commands, and the next start says so', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create()
  const task = await post(stage, id, 'long', command('sleep 1000'))
  await expect.poll(async () => (await look(stage, id, task)).status).toBe('running')
  await stage.server.restart('SIGTERM')
  expect(await look(stage, id, task)).toMatchObject({ status: 'error' })
})

test('an invalid request is refused with a reason, and creates no task', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create()
  const refused = async (body: unknown, headers = {}) => {
    const answer = await stage.server.call('POST', `/conversations/${id}/tasks`, body, headers)
    return { status: answer.status, error: answer.body.error, message: answer.body.message as string }
  }
  for (const [body, said] of [
    [{}, 'title'],
    [{ title: '', runnable: { type: 'Ticker' } }, 'title'],
    [{ title: 'x'.repeat(201), runnable: { type: 'Ticker' } }, 'title'],
    [{ title: 'x' }, 'runnable'],
    [{ title: 'x', runnable: { type: 'Unknown' } }, 'runnable'],
    [{ title: 'x', runnable: { type: 'Ticker', interval: 0 } }, 'interval'],
    [{ title: 'x', runnable: { type: 'Ticker', count: 1_000_000 } }, 'count'],
    [{ title: 'x', runnable: { type: 'Ticker', more: 1 } }, 'runnable'],
    [{ title: 'x', runnable: { type: 'Command' } }, 'command'],
    [{ title: 'x', runnable: { type: 'Command', command: 'true', timeout: -1 } }, 'timeout'],
    [{ title: 'x', runnable: { type: 'AgentRun', message: { role: 'user', content: '' } } }, 'content'],
    [{ title: 'x', runnable: { type: 'AgentRun', message: { role: 'agent', content: 'x' } } }, 'role'],
    [{ title: 'x', runnable: { type: 'Ticker' }, more: 1 }, 'unknown field'],
    ['{', 'JSON'],
  ] as const) {
    const answer = await refused(body)
    expect(answer, JSON.stringify(body)).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(answer.message).toContain(said)
  }
  expect(await refused('x', { 'content-type': 'text/plain' })).toMatchObject({ status: 415 })
  const of = (path: string, method = 'GET') => stage.server.call(method, `/conversations/${path}`)
  const nobody = '018f0000-0000-7000-8000-000000000001'
  expect(await of(`${id}/tasks/${nobody}`)).toMatchObject({ status: 404, body: { error: 'task_not_found' } })
  expect(await of(`${id}/tasks/${nobody}`, 'DELETE')).toMatchObject({ status: 404, body: { error: 'task_not_found' } })
  expect(await of(`${id}/tasks/no-uuid`)).toMatchObject({ status: 400 })
  expect(await of(`${nobody}/tasks`)).toMatchObject({ status: 404, body: { error: 'conversation_not_found' } })
  expect(await of(`${id}/tasks?status=done`)).toMatchObject({ status: 400 })
  expect(await of(`${id}/tasks?page_id=x`)).toMatchObject({ status: 400, body: { error: 'invalid_cursor' } })
  expect(await of(`${id}/tasks`, 'PUT')).toMatchObject({
    status: 405,
    body: { details: { allow: ['GET', 'HEAD', 'POST'] } },
  })
  expect((await of(`${id}/tasks`)).body).toEqual({ items: [], next_page_id: null })
})
