/** Commands of clients when the answer is lost, the server is killed, or the same is sent again. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'

let server: TestServer
let id: string
let keys = 0

beforeAll(async () => {
  server = await startServer()
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'a-key-of-no-model' }
  id = (await server.call('POST', '/conversations', { llm_config })).body.id
})
afterAll(() => server[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  server.call(method, `/conversations/${id}${path}`, body, headers)
const freshKey = () => ({ 'idempotency-key': `key-${++keys}` })
const post = (body: object, headers?: Record<string, string>) => call('POST', '/commands', body, headers)
const output = async (commandId: string) => (await call('GET', `/commands/${commandId}/output`)).body
const newest = async () => (await call('GET', '/commands?limit=1')).body.items[0]

/** Once it runs. */
async function runningId(command: string): Promise<string> {
  await expect.poll(newest).toMatchObject({ command, status: 'running' })
  return (await newest()).id
}

/** A command that goes on when it may. */
const untilAllowed = (name: string) => `until [ -e "$HOME/${name}" ]; do sleep 0.02; done; echo over`
const allow = (name: string) => post({ command: `touch "$HOME/${name}"`, session_id: 'allowing' })

/** How often a command that notes each run in a file has run. */
const runsOf = async (file: string) => (await post({ command: `cat ${file} 2>/dev/null | wc -l` })).body.stdout.trim()

describe('with an Idempotency-Key', () => {
  test('the same command sent again is answered as before, and run once, after a restart too', async () => {
    const key = freshKey()
    const body = { command: 'echo run >>once; echo out; echo err >&2; cd /usr; (exit 5)' }
    const first = await post(body, key)
    expect(first.body).toMatchObject({ exit_code: 5, stdout: 'out\n', stderr: 'err\n', cwd: '/usr' })
    expect(await post(body, key)).toMatchObject({ status: 200, body: first.body })
    await server.restart('SIGKILL')
    expect(await post(body, key)).toMatchObject({ status: 200, body: first.body })
    expect(await post({ command: 'cd -; cat once' })).toMatchObject({
      body: { stdout: expect.not.stringContaining('run\nrun') },
    })
  })

  test('the same in the background is answered as before, whatever its outcome', async () => {
    const key = freshKey()
    const body = { command: 'echo run >>"$HOME/once-bg"; sleep 0.1', background: true }
    const first = await post(body, key)
    expect(first).toMatchObject({ status: 202, body: { status: 'running' } })
    expect(await post(body, key)).toMatchObject({ status: 202, body: first.body })
    await expect.poll(async () => (await newest()).status).toBe('exited')
    expect(await post(body, key)).toMatchObject({ status: 202, body: first.body })
    expect(await runsOf('"$HOME/once-bg"')).toBe('1')
  })

  test('another body with it is refused, at once and later', async () => {
    const key = freshKey()
    const command = untilAllowed('first')
    const running = post({ command }, key)
    await runningId(command)
    const other = () => post({ command: 'echo other' }, key)
    expect(await other()).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
    await allow('first')
    await running
    expect(await other()).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
  })

  test('a repeated request is refused while the command runs, with its id; afterwards it gets the response', async () => {
    const key = freshKey()
    const body = { command: untilAllowed('second') }
    const running = post(body, key)
    const command_id = await runningId(body.command)
    expect(await post(body, key)).toMatchObject({
      status: 409,
      body: { error: 'idempotency_in_flight', details: { command_id } },
    })
    expect(await post(body, key)).toMatchObject({ status: 409 })
    await allow('second')
    const { body: first } = await running
    expect((await post(body, key)).body).toEqual(first)
  })

  test('many concurrent requests run one command', async () => {
    const key = freshKey()
    const answers = await Promise.all(Array.from({ length: 8 }, () => post({ command: 'echo x >>"$HOME/many"' }, key)))
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    expect(await runsOf('"$HOME/many"')).toBe('1')
  })

  test('that a refusal had come with, a command still runs', async () => {
    const key = freshKey()
    expect(await post({ command: 'true', session_id: '..' }, key)).toMatchObject({ status: 400 })
    expect(await post({ command: 'echo now' }, key)).toMatchObject({ status: 200, body: { stdout: 'now\n' } })
  })

  test.each(['', 'two words', 'x'.repeat(256)])('that is invalid is refused: %j', async (key) => {
    const { status, body } = await post({ command: 'true' }, { 'idempotency-key': key })
    expect([status, body.error]).toEqual([400, 'invalid_request'])
  })
})

describe('a server that is killed', () => {
  test('reports the running commands as lost and keeps their output; none of their processes survives', async () => {
    const waiting = post({ command: 'echo begun; sleep 401' }).catch(() => 'cut off')
    const waited = await runningId('echo begun; sleep 401')
    const { body } = await post({ command: 'echo begun too; sleep 402', background: true })
    await expect.poll(async () => (await output(waited)).text).toBe('begun\n')
    await expect.poll(async () => (await output(body.command_id)).text).toBe('begun too\n')
    await server.restart('SIGKILL')
    expect(await waiting).toBe('cut off')

    const { items } = (await call('GET', '/commands?limit=2')).body
    expect(items).toMatchObject([
      { id: body.command_id, status: 'lost', exit_code: null, pid: body.pid, started_at: expect.any(String) },
      { id: waited, status: 'lost', exit_code: null },
    ])
    expect(await output(waited)).toMatchObject({ text: 'begun\n', status: 'lost', complete: true })
    expect(await output(body.command_id)).toMatchObject({ text: 'begun too\n', complete: true })
    expect((await call('GET', '/processes')).body.items).toEqual([])
    expect((await call('DELETE', `/commands/${waited}`)).status).toBe(204)
    expect(await call('POST', `/commands/${waited}/input`, { text: 'x' })).toMatchObject({
      body: { error: 'input_closed' },
    })
  })

  test.each([{}, { background: true }])(
    'does not know what a keyed command came to, and does not run it again: %j',
    async (more) => {
      const key = freshKey()
      const file = `cut-${keys}`
      const body = { command: `echo run >>"$HOME/${file}"; echo begun; sleep 403`, ...more }
      const waiting = post(body, key).catch(() => 'cut off')
      await expect.poll(newest).toMatchObject({ command: body.command, status: 'running' })
      const { id: command_id } = await newest()
      await expect.poll(async () => (await output(command_id)).text).toBe('begun\n')
      await server.restart('SIGKILL')
      await waiting
      for (let i = 0; i < 2; i++) {
        expect(await post(body, key)).toMatchObject({
          status: 409,
          body: { error: 'outcome_unknown', details: { command_id } },
        })
      }
      expect(await post({ command: 'true' }, key)).toMatchObject({ status: 422 })
      expect(await runsOf(`"$HOME/${file}"`)).toBe('1')
    },
  )
})

test('a server that stops ends the commands that run, and knows afterwards that it did', async () => {
  const waiting = post({ command: 'echo begun; sleep 404' })
  const waited = await runningId('echo begun; sleep 404')
  const { command_id } = (await post({ command: 'sleep 405', background: true })).body
  await expect.poll(async () => (await output(waited)).text).toBe('begun\n')
  await server.restart('SIGTERM')
  expect(await waiting).toMatchObject({ status: 200, body: { status: 'killed', stdout: 'begun\n' } })
  for (const each of [waited, command_id])
    expect((await call('GET', `/commands/${each}`)).body).toMatchObject({ status: 'killed' })
  const { items } = (await call('GET', '/events?types=CommandResult&order=desc&limit=2')).body
  expect(new Set(items.map((event: { command_id: string }) => event.command_id))).toEqual(new Set([waited, command_id]))
})

test('shells for single commands leave nothing on the disk, not even those of a server that was killed', async () => {
  const forks = async () => {
    const names = await readdir(join(server.dataDir, 'sessions', id, 'shells'))
    return names.filter((name) => name.startsWith('@'))
  }
  await post({ command: 'sleep 406', background: true })
  await server.restart('SIGKILL')
  expect(await forks()).toHaveLength(1)
  await post({ command: 'true', background: true })
  await expect.poll(forks).toEqual([])
})
