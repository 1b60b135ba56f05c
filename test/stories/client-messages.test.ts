/** A client that lost an answer sends its message again, whatever has happened to the server. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

test('a message with a client_message_id is one event and one run, also after kill -9 and an orderly restart', async () => {
  await using stage = await setStage([{ text: 'Done.' }])
  const { server } = stage
  const id = await stage.create()
  const post = (fields: object) =>
    server.call('POST', `/conversations/${id}/messages`, {
      message: 'go',
      run: true,
      client_message_id: 'm-1',
      ...fields,
    })
  const first = await post({})
  expect(first.status).toBe(202)
  await until('the end', async () => (await stage.events(id)).some(({ type }) => type === 'Result'))
  const events = await stage.events(id)
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    await server.restart(signal)
    expect(await post({})).toMatchObject({ status: 200, body: first.body })
    expect(await post({ message: 'stop' })).toMatchObject({ status: 409, body: { error: 'message_exists' } })
  }
  expect(await stage.events(id)).toEqual(events)
  const next = await post({ client_message_id: 'm-2' })
  expect(next.status).toBe(202)
  expect(next.body.run_id).not.toBe(first.body.run_id)
})

test.each([
  ['messages', 'an id', () => ({}), { message: '/log', client_message_id: 'm-1' }],
  [
    'messages',
    'an id and keys of their own',
    () => ({ 'idempotency-key': crypto.randomUUID() }),
    { message: '/log', client_message_id: 'm-1' },
  ],
  ['messages', 'a key', () => ({ 'idempotency-key': 'k-1' }), { message: '/log' }],
  [
    'tasks',
    'a key',
    () => ({ 'idempotency-key': 'k-1' }),
    { title: 'Log', runnable: { type: 'AgentRun', message: 'go' } },
  ],
])('the hooks and the slash command of %s run once for requests that race with %s', async (path, _, headers, body) => {
  await using stage = await setStage([])
  const workdir = await mkdtemp(join(tmpdir(), 'repeated-'))
  await using ends = new AsyncDisposableStack()
  ends.defer(() => rm(workdir, { recursive: true }))
  await mkdir(join(workdir, '.claude/commands'), { recursive: true })
  await writeFile(join(workdir, '.claude/commands/log.md'), 'Log: !`echo x >> log`')
  const command = 'echo x >> "$CLAUDE_PROJECT_DIR/asked"; until [ -e "$CLAUDE_PROJECT_DIR/go" ]; do sleep 0.05; done'
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] }
  const id = await stage.create({ workdir, setting_sources: ['project'], trust_project: true, hooks })
  const post = () => stage.server.call('POST', `/conversations/${id}/${path}`, body, headers())
  const posts = [post(), post(), post()]
  await stage.events(id)
  await writeFile(join(workdir, 'go'), '')
  const answers = (await Promise.all(posts)).map((answer) => answer.body)
  expect(answers[0]).toHaveProperty(path === 'tasks' ? 'id' : 'event_id')
  expect(answers).toEqual(Array(3).fill(answers[0]))
  expect(await readFile(join(workdir, 'asked'), 'utf8')).toBe('x\n')
  if (path === 'messages') expect(await readFile(join(workdir, 'log'), 'utf8')).toBe('x\n')
})
