/** Whatever a command does to go on: pausing, ending and deleting are answered, and nothing of it is left. */
import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { bash, setStage, type Stage } from '../support/agent.ts'
import { processesOf } from '../shell/shell-fixture.ts'

/** Functions that lie about which process the shell is, for whoever asks the shell. They are in the saved state too. */
const LIES = String.raw`builtin() {
  [[ $other ]] || { sleep 1000 >/dev/null 2>&1 & other=$!; }
  if [[ $1 == printf && $2 == '%s\0' && $# == 11 ]]; then command printf '%s\0' "${'$'}{@:3:8}" "$other"
  else command builtin "$@"; fi
}
kill() { :; }; trap() { :; }; enable() { :; }`
const ENDLESS = `${LIES}\ncommand trap "" INT TERM HUP; while :; do sleep 0.05 || :; done`

let stage: Stage

beforeAll(async () => {
  stage = await setStage(
    ({ body }) => {
      const last = body.messages.at(-1)
      return last?.role === 'user' ? bash(String(last.content), { timeout: 3600 }) : { text: 'Done.' }
    },
    { env: { OPENHANDS_ISOLATION: inject('isolation') } },
  )
})
afterAll(() => stage[Symbol.asyncDispose]())

/** The command itself would not end within an hour. */
async function answered(method: string, path: string, body?: unknown): Promise<number> {
  return (await stage.server.call(method, path, body)).status
}

/** A conversation whose agent is in an endless command, in a shell that began with the lies of the one before. */
async function stuck(command = ENDLESS, fields: object = {}): Promise<string> {
  const id = await stage.create({ ...fields })
  const call = (path: string, body: object) => stage.server.call('POST', `/conversations/${id}${path}`, body)
  await call('/commands', { command: LIES, session_id: 'agent' })
  await call('/commands', { command: 'exit', session_id: 'agent' })
  await call('/messages', { message: { role: 'user', content: `echo begun; ${command}` }, run: true })
  await expect
    .poll(async () => (await stage.server.call('GET', `/conversations/${id}/shell-sessions`)).body)
    .toMatchObject({ items: [expect.objectContaining({ status: 'busy', pid: expect.any(Number) })] })
  return id
}

describe('a command that ignores every signal, in a shell that lies', () => {
  test('is ended by pause, and the conversation continues', async () => {
    const id = await stuck()
    expect(await answered('POST', `/conversations/${id}/pause`, { interrupt: true })).toBeLessThan(300)
    const { body } = await stage.server.call('GET', `/conversations/${id}`)
    expect(body.status).toBe('paused')
    expect((await stage.server.call('POST', `/conversations/${id}/commands`, { command: 'echo on' })).body.stdout).toBe(
      'on\n',
    )
  })

  test('is ended with its conversation', async () => {
    const id = await stuck()
    expect(await answered('DELETE', `/conversations/${id}`)).toBe(204)
    expect((await stage.server.call('GET', `/conversations/${id}`)).status).toBe(410)
    await expect.poll(() => processesOf(id)).toBe(0)
  })

  test('is ended as a client’s command, in the background or not, and with its session', async () => {
    const id = await stage.create()
    const path = `/conversations/${id}`
    const started = await stage.server.call('POST', `${path}/commands`, { command: ENDLESS, background: true })
    expect(await answered('DELETE', `${path}/commands/${started.body.command_id}`)).toBeLessThan(300)
    const running = stage.server.call('POST', `${path}/commands`, { command: ENDLESS, session_id: 'mine' })
    await expect
      .poll(async () => (await stage.server.call('GET', `${path}/commands`)).body.items[0].status)
      .toBe('running')
    expect(await answered('DELETE', `${path}/shell-sessions/mine`)).toBeLessThan(300)
    expect((await running).status).toBe(200)
    await expect.poll(() => processesOf(id)).toBe(0)
  })
})

/** The test needs a device that can be frozen: the kernel ends every other process that gets SIGKILL. */
const execute = promisify(execFile)
const canFreeze =
  process.getuid?.() === 0 &&
  (await execute('losetup', ['-f']).then(
    () => true,
    () => false,
  ))

test.runIf(canFreeze)(
  'a command that the kernel does not end delays neither its result nor other conversations',
  async () => {
    const root = await mkdtemp(join(tmpdir(), 'frozen-'))
    const [image, disk] = [join(root, 'image'), join(root, 'disk')]
    await mkdir(disk)
    await execute('truncate', ['-s', '16M', image])
    await execute('mkfs.ext4', ['-q', image])
    await execute('mount', ['-o', 'loop', image, disk])
    // Should this test be killed: nothing is to be stuck for ever.
    const thaw = spawn('sh', ['-c', `sleep 90; fsfreeze -u ${disk}; umount -l ${disk}`], {
      detached: true,
      stdio: 'ignore',
    })
    onTestFinished(async () => {
      process.kill(-thaw.pid!, 'SIGKILL')
      await execute('umount', ['-l', disk])
      await rm(root, { recursive: true, force: true })
    })
    const workdir = join(disk, 'workdir')
    await mkdir(workdir)
    const first = await stage.create({ workdir })
    await stage.server.call('POST', `/conversations/${first}/commands`, { command: 'echo there >file; sync' })
    const other = await stage.create()
    await execute('fsfreeze', ['-f', disk])
    try {
      const path = `/conversations/${first}`
      const running = stage.server.call('POST', `${path}/commands`, { command: 'echo stuck >stuck', background: true })
      const { body } = await running
      expect(await answered('DELETE', `${path}/commands/${body.command_id}`)).toBeLessThan(300)
      stage.server.call('POST', `${path}/commands`, { command: 'echo stuck >stuck' }).catch(() => {})
      expect(
        (await stage.server.call('POST', `/conversations/${other}/commands`, { command: 'echo on' })).body.stdout,
      ).toBe('on\n')
      expect(await answered('DELETE', path)).toBe(204)
    } finally {
      await execute('fsfreeze', ['-u', disk])
    }
    await expect.poll(() => processesOf(first)).toBe(0)
  },
)
