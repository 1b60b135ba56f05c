/**
 * What runs in a conversation, seen and ended by its clients, on the host and in a sandbox (see `vitest.config.ts`): all
 * that its shells have started and nothing else, whatever a client asks for.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { isSandboxed } from '../shell/shell-fixture.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

type Listed = {
  pid: number
  ppid: number
  state: string
  command_line: string
  session_id?: string
  command_id?: string
}

let stage: Stage
let id: string

beforeAll(async () => {
  stage = await setStage(
    ({ body }) => {
      const last = body.messages.at(-1)
      return last?.role === 'user' ? bash(String(last.content)) : { text: 'Done.' }
    },
    { env: { OPENHANDS_ISOLATION: inject('isolation') } },
  )
  id = await stage.create()
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown, of = id) =>
  stage.server.call(method, `/conversations/${of}${path}`, body)
const run = async (command: string, more: object = {}, of = id) =>
  (await call('POST', '/commands', { command, ...more }, of)).body
const list = async (of = id): Promise<Listed[]> => (await call('GET', '/processes', undefined, of)).body.items
const linesOf = (processes: readonly Listed[]) => processes.map(({ command_line }) => command_line)
/** One that nobody has waited for is dead all the same. */
const isAlive = (pid: number) => {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

describe('the processes of a conversation', () => {
  test('are those that its agent and its clients left running, each with whose it is', async () => {
    expect(await list()).toEqual([])
    const begun = Date.now()
    await stage.say(id, 'sleep 301 >/dev/null 2>&1 &')
    const left = await run('sleep 302 >/dev/null & echo', { session_id: 'mine' })
    const inBackground = await run('sleep 303', { background: true })
    const started = ['sleep 301', 'sleep 302', 'sleep 303']
    // A process that has just begun is not asleep yet.
    const processes = await until('the processes to sleep', async () => {
      const all = await list()
      const asleep = all.filter(({ state }) => state === 'sleeping')
      return started.every((line) => linesOf(asleep).includes(line)) && all
    })
    const find = (line: string) => processes.find(({ command_line }) => command_line === line)
    expect(find('sleep 301')).toEqual({
      pid: expect.any(Number),
      ppid: expect.any(Number),
      command_line: 'sleep 301',
      state: 'sleeping',
      started_at: expect.stringMatching(/Z$/),
      session_id: 'agent',
    })
    expect(find('sleep 302')).toMatchObject({
      session_id: 'mine',
      command_id: left.command_id,
      pid: left.background_pid,
    })
    expect(find('sleep 303')).toMatchObject({ command_id: inBackground.command_id, ppid: inBackground.pid })
    // The shells of sessions are none of them; the one of a command in the background is its own.
    expect(processes.filter(({ command_line }) => !command_line.startsWith('sleep')).map(({ pid }) => pid)).toEqual([
      inBackground.pid,
    ])
    const startedAt = Date.parse((find('sleep 302') as unknown as { started_at: string }).started_at)
    // The kernel counts in hundredths of a second, and from a start that is rounded.
    expect(startedAt).toBeGreaterThan(begun - 2000)
    expect(startedAt).toBeLessThan(Date.now() + 2000)
    await call('DELETE', '/processes?pattern=sleep')
    await call('DELETE', `/processes/${inBackground.pid}`)
    await expect.poll(() => list()).toEqual([])
  })

  test('have those among them that left the tree of their shell, with what they start', async () => {
    await run('(setsid sh -c "sleep 311; :" >/dev/null 2>&1 &)')
    await expect.poll(async () => linesOf(await list())).toEqual(['sh -c sleep 311; :', 'sleep 311'])
    const processes = await list()
    const { status, body } = await call('DELETE', `/processes/${processes[0]!.pid}`)
    expect(status).toBe(200)
    expect(linesOf(body.ended)).toEqual(['sh -c sleep 311; :', 'sleep 311'])
    expect(processes.some(({ pid }) => isAlive(pid))).toBe(false)
    expect(await list()).toEqual([])
  })

  test('are ended with all their descendants, and their session continues', async () => {
    await run('export KEPT=yes; (while :; do sleep 321; done) & (exec sleep 322) &')
    // Until then the second one is a copy of the shell, as the loop is.
    await expect.poll(async () => linesOf(await list())).toEqual(expect.arrayContaining(['sleep 321', 'sleep 322']))
    const loop = (await list()).find(({ command_line }) => command_line.startsWith('bash'))!
    expect((await call('DELETE', `/processes/${loop.pid}`)).body.ended).toHaveLength(2)
    expect(linesOf(await list())).toEqual(['sleep 322'])
    expect((await call('DELETE', '/processes?pattern=322')).body.ended).toMatchObject([{ command_line: 'sleep 322' }])
    expect(await run('echo $KEPT')).toMatchObject({ stdout: 'yes\n' })
  })

  test('are matched exactly by a pattern; without a match nothing ends', async () => {
    await run('sleep 331 >/dev/null & sleep 332 >/dev/null &')
    // Until then they are copies of the shell.
    await expect.poll(async () => linesOf(await list()).toSorted()).toEqual(['sleep 331', 'sleep 332'])
    expect((await call('DELETE', '/processes?pattern=sleep.*')).body).toEqual({ ended: [] })
    expect(await list()).toHaveLength(2)
    expect((await call('DELETE', '/processes?pattern=sleep%20332')).body.ended).toHaveLength(1)
    expect((await call('DELETE', '/processes?pattern=sleep')).body.ended).toHaveLength(1)
  })

  test('end by their own end, too: a command in the background tells how', async () => {
    const { command_id, pid } = await run('sleep 341', { background: true })
    await call('DELETE', `/processes/${pid}`)
    await expect.poll(async () => (await call('GET', `/commands/${command_id}`)).body.status).toBe('exited')
    expect((await call('GET', `/commands/${command_id}`)).body).toMatchObject({ exit_code: 137 })
  })
})

describe('no client ends', () => {
  async function refusePid(pid: number | string, of = id): Promise<void> {
    const { status, body } = await call('DELETE', `/processes/${pid}`, undefined, of)
    expect([status, body.error], String(pid)).toEqual([404, 'process_not_found'])
  }

  test('the server, the first process, a nonexistent one, or another user’s', async () => {
    const bystander = spawn('sleep', ['351'])
    for (const pid of [1, stage.server.pid, process.pid, process.ppid, bystander.pid!, 4_194_304]) await refusePid(pid)
    await call('DELETE', '/processes?pattern=351')
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull()
    expect((await stage.server.call('GET', '/alive')).status).toBe(200)
    bystander.kill('SIGKILL')
    await once(bystander, 'exit')
  })

  test('a process of another conversation, nor sees it', async () => {
    const other = await stage.create()
    const { background_pid: pid } = await run('sleep 352 >/dev/null &', {}, other)
    await refusePid(pid)
    expect((await call('DELETE', '/processes?pattern=352')).body.ended).toEqual([])
    expect(await list()).toEqual([])
    await expect.poll(async () => linesOf(await list(other))).toEqual(['sleep 352'])
    expect((await call('DELETE', `/processes/${pid}`, undefined, other)).body.ended).toHaveLength(1)
  })

  test('a shell of a session, nor the processes of its sandbox: sessions are ended as such', async () => {
    await run('true', { session_id: 'kept' })
    const { items } = (await call('GET', '/shell-sessions')).body
    const { pid } = items.find((item: { id: string }) => item.id === 'kept')
    expect(isAlive(pid)).toBe(true)
    await refusePid(pid)
    await call('DELETE', '/processes?pattern=bash')
    await call('DELETE', '/processes?pattern=bwrap')
    expect(isAlive(pid)).toBe(true)
    expect((await call('DELETE', '/shell-sessions/kept')).status).toBe(204)
    expect(isAlive(pid)).toBe(false)
    await refusePid(pid)
  })

  test.each(['0', '-1', '1e9999', '1.5', 'self', '0x10', '%20', '9'.repeat(30)])('an invalid pid: %s', async (pid) => {
    const { status } = await call('DELETE', `/processes/${pid}`)
    expect([400, 404]).toContain(status)
  })

  test.each(['', '?pattern=', `?pattern=${'x'.repeat(1001)}`, '?signal=KILL'])(
    'what nothing is said of: %s',
    async (query) => {
      const { status, body } = await call('DELETE', `/processes${query}`)
      expect([status, body.error]).toEqual([400, 'invalid_request'])
    },
  )
})

describe('shell sessions', () => {
  test('are listed with where they stand, and end with their processes and all they knew', async () => {
    await run('cd /usr; export KNOWN=yes; sleep 361 >/dev/null &', { session_id: 'short' })
    const { items } = (await call('GET', '/shell-sessions')).body
    expect(items).toContainEqual({
      id: 'short',
      status: 'idle',
      used_by_agent: false,
      cwd: '/usr',
      pid: expect.any(Number),
    })
    const waiting = run('sleep 362', { session_id: 'short' })
    await expect.poll(async () => linesOf(await list())).toContain('sleep 362')
    expect((await call('DELETE', '/shell-sessions/short')).status).toBe(204)
    expect(await waiting).toMatchObject({ status: 'killed', note: expect.stringContaining('closed') })
    expect(await list()).toEqual([])
    expect(await run('echo "${KNOWN-no}"', { session_id: 'short' })).toMatchObject({ stdout: 'no\n' })
  })

  test('are known after a restart of the server, and continue in their state', async () => {
    await run('cd /usr; export OVER=yes', { session_id: 'long' })
    await stage.server.restart()
    expect((await call('GET', '/shell-sessions')).body.items).toContainEqual({
      id: 'long',
      status: 'suspended',
      used_by_agent: false,
    })
    expect(await run('echo $OVER; pwd', { session_id: 'long' })).toMatchObject({ stdout: 'yes\n/usr\n' })
    expect((await call('DELETE', '/shell-sessions/long')).status).toBe(204)
    expect(await run('echo "${OVER-no}"', { session_id: 'long' })).toMatchObject({ stdout: 'no\n' })
  })
})

test('the pids that clients receive are those of the host, whatever the shell reports', async () => {
  const { background_pid, stdout } = await run('sleep 371 >/dev/null & echo $!')
  expect(isAlive(background_pid)).toBe(true)
  expect(stdout === `${background_pid}\n`).toBe(!isSandboxed)
  expect((await call('DELETE', `/processes/${background_pid}`)).status).toBe(200)
  expect(isAlive(background_pid)).toBe(false)
})
