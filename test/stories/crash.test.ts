import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'

const SCRIPT = {
  replies: [
    { when: 'go on', turns: [{ text: 'I see that it was interrupted.' }] },
    { turns: [bash('echo 1'), bash('echo 2'), bash('echo 3; sleep 1000'), { text: 'Done.' }] },
  ],
}

test('a server killed in the middle of a run loses nothing, answers the cut-off call as interrupted, and runs on', async () => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const id = await stage.create()
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?after_seq=0`)
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'start' }, run: true })
  await stream.until(({ event, data }) => event === 'ToolUse' && data.input.command.includes('sleep'))
  const requests = stage.model.requests.length

  await server.restart('SIGKILL')

  const events = await stage.events(id)
  expect(events.slice(0, stream.frames.length)).toEqual(stream.frames.map((frame) => frame.data))
  expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1))
  expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'paused', reason: 'server_restart' })
  expect(events.at(-2)).toMatchObject({ type: 'Result', stop_reason: 'server_restart', steps: 3 })
  expect(events.at(-3)).toMatchObject({ type: 'ToolResult', is_error: true, error_type: 'interrupted' })
  expect((await server.call('GET', `/conversations/${id}`)).body).toMatchObject({
    status: 'paused',
    state: { agent_paused: true },
  })
  expect(stage.model.requests, 'nothing runs by itself').toHaveLength(requests)

  const after = await stage.say(id, 'go on')
  expect(after.find((event) => event.type === 'Result')).toMatchObject({
    stop_reason: 'completed',
    final_text: 'I see that it was interrupted.',
  })
})

test('with resume_on_start a run that a kill or a stop of the server interrupted continues by itself', async () => {
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await using stage = await setStage({ replies: [{ turns: [bash('sleep 1000 > begun'), { text: 'Resumed.' }] }] })
    const { server } = stage
    const id = await stage.create({ resume_on_start: true })
    const { workdir } = (await server.call('GET', `/conversations/${id}`)).body
    await server.call('POST', `/conversations/${id}/messages`, {
      message: { role: 'user', content: 'start' },
      run: true,
    })
    // A call that has not begun when the server stops stays open without a result.
    await until('the command runs', async () => existsSync(join(workdir, 'begun')))

    await server.restart(signal)

    const rest = await subscribe(server.url, `/conversations/${id}/events/stream?after_seq=0`)
    const result = await rest.until(({ event, data }) => event === 'Result' && data.stop_reason === 'completed')
    rest.close()
    expect(result.data.final_text, signal).toBe('Resumed.')
    expect(
      rest.frames.filter((frame) => frame.event === 'ToolResult').map((frame) => frame.data.error_type),
      signal,
    ).toEqual(['interrupted'])
  }
})

test('a run that waits for the model when the server is killed is paused, and its half answer is not in the log', async () => {
  const beginning = { choices: [{ index: 0, delta: { content: 'one two' } }] }
  await using stage = await setStage([{ raw: [`data: ${JSON.stringify(beginning)}\n\n`], hang: true }])
  const { server } = stage
  const id = await stage.create()
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?deltas=true`)
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'start' }, run: true })
  await stream.until(({ event, data }) => event === 'AssistantDelta' && data.text_delta === 'one two')

  await server.restart('SIGKILL')

  const events = await stage.events(id)
  expect(events.map((event) => event.type)).toEqual([
    'SystemInit',
    'UserMessage',
    'StatusUpdate',
    'Result',
    'StatusUpdate',
  ])
})

test('SIGTERM in the middle of a run pauses it, ends its command, flushes, and exits with 0', async () => {
  await using stage = await setStage({ replies: [{ turns: [bash('sleep 987654321'), { text: 'Done.' }] }] })
  const { server } = stage
  const id = await stage.create()
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream`)
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'start' }, run: true })
  // A call that has not begun stays open without a result.
  await vi.waitFor(() => promisify(execFile)('pgrep', ['-f', 'sleep 987654321']), PATIENCE_MS)

  expect(await server.stop('SIGTERM')).toBe(0)
  await stream.ended
  expect(stream.frames.map((frame) => frame.event).slice(-4)).toEqual([
    'ToolResult',
    'Result',
    'StatusUpdate',
    'server_closing',
  ])
  await expect(promisify(execFile)('pgrep', ['-f', 'sleep 987654321'])).rejects.toMatchObject({ code: 1 })

  await server.restart()
  expect((await stage.events(id)).at(-1)).toMatchObject({
    type: 'StatusUpdate',
    status: 'paused',
    reason: 'server_closing',
  })
})
