import { execFileSync } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasFiles, KEY, freePort, launch, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** The start warns about the key of the other tests, which can be guessed. */
const RANDOM_KEY = randomBytes(24).toString('hex')

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'agent-server-starting-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** Runs `serve` to its end; what it said, and its exit code. */
async function refuse(
  env: Record<string, string>,
  args: readonly string[] = [],
): Promise<{ code: number | null; output: string }> {
  const { exited, output } = launch(['serve', ...args], {
    // Others may listen on the port that it takes by itself.
    env: { OPENHANDS_DATA_DIR: join(home, 'data'), OPENHANDS_SERVER_PORT: '0', ...env },
    cwd: home,
  })
  return { code: await exited, output: output() }
}

test('serve refuses to start without a master key and says how to make one', async () => {
  const { code, output } = await refuse({})
  expect(code).toBe(2)
  expect(output).toBe(
    'agent-server: OPENHANDS_MASTER_KEY is not set. Make a key with `openssl rand -hex 32` and export it, or start with --generate-key to have one made and kept.\n',
  )
})

test.for([
  ['a short key', { OPENHANDS_MASTER_KEY: 'short' }, /at least 16 characters/],
  [
    'a port that is none',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_SERVER_PORT: 'eighty' },
    /OPENHANDS_SERVER_PORT is not valid/,
  ],
  [
    'a log level that is none',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_LOG_LEVEL: 'LOUD' },
    /OPENHANDS_LOG_LEVEL is not valid/,
  ],
  [
    'a directory that cannot be made',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_DATA_DIR: '/dev/null/data' },
    /\/dev\/null\/data cannot be written to/,
  ],
  [
    'a level of isolation that is none',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_ISOLATION: 'docker' },
    /OPENHANDS_ISOLATION is not valid/,
  ],
  [
    'a sandbox that is not available',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_ISOLATION: 'bubblewrap', PATH: '/nowhere' },
    /OPENHANDS_ISOLATION=bubblewrap is not available: bubblewrap is not installed/,
  ],
  ['a key and a key file', { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_MASTER_KEY_FILE: '/dev/null' }, /not both/],
  [
    'a variable that is misspelt',
    { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_SERVER_PROT: '8001' },
    /no variable OPENHANDS_SERVER_PROT; did you mean OPENHANDS_SERVER_PORT\?/,
  ],
] as const)('with %s it says so in one line and exits with 2', async ([, env, sentence]) => {
  const { code, output } = await refuse(env)
  expect(code).toBe(2)
  expect(output).toMatch(sentence)
  expect(output.trimEnd().split('\n')).toHaveLength(1)
  expect(output).not.toContain(RANDOM_KEY)
})

test('a request that comes while the server is loaded is answered as soon as it can be', async () => {
  const port = String(await freePort())
  const { child, exited, output } = launch(['serve', '--host', '127.0.0.1', '--port', port], {
    env: { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_DATA_DIR: join(home, 'early') },
    cwd: home,
  })
  const headers = { authorization: `Bearer ${RANDOM_KEY}` }
  // As programs do that wait for a probe and then begin. The first that is not refused by the system is answered.
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/alive`).then(({ status }) => status)).toBe(200)
  const body = JSON.stringify({ llm_config: { model: 'none' } })
  const created = await fetch(`http://127.0.0.1:${port}/conversations`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  expect(created.status).toBe(201)
  expect(output()).toContain(`Server listening at http://127.0.0.1:${port}`)
  child.kill('SIGTERM')
  expect(await exited, output()).toBe(0)
})

test('a signal while the server is loaded ends it, and what waits', async () => {
  const port = await freePort()
  const { child, exited, output } = launch(['serve', '--host', '127.0.0.1', '--port', String(port)], {
    env: { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_DATA_DIR: join(home, 'stopped-early') },
    cwd: home,
  })
  const socket = await firstConnection(port)
  child.kill('SIGTERM')
  const closed = once(socket, 'close')
  expect(await exited, output()).toBe(0)
  await closed
})

test('a second signal, of any kind, ends a start whose disk does not answer', async () => {
  const [port, dataDir] = [await freePort(), await mkdtemp(join(home, 'stuck-'))]
  const keys = join(dataDir, 'data-keys')
  execFileSync('mkfifo', [keys])
  const { child, exited } = launch(['serve', '--host', '127.0.0.1', '--port', String(port)], {
    env: { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_DATA_DIR: dataDir },
    cwd: home,
  })
  // Fails until the server opens it. From then on it waits for the first byte.
  let writer: FileHandle | undefined
  const opening = () => open(keys, constants.O_WRONLY | constants.O_NONBLOCK).then((file) => (writer = file))
  await expect.poll(opening).toBeDefined()
  child.kill('SIGTERM')
  child.kill('SIGINT')
  await exited
  await writer!.close()
  expect(child.exitCode).toBe(1)
})

test('a server with too few descriptors says so, and what to do', async () => {
  const limited = { OPENHANDS_MASTER_KEY: RANDOM_KEY, OPENHANDS_DATA_DIR: join(home, 'limited') }
  const wrapper = ['bash', '-c', 'ulimit -n 2048; exec "$@"', 'bash']
  await using server = await startServer({ env: limited, wrapper })
  await expect.poll(server.output).toMatch(/the server may have 2048 open files; .*LimitNOFILE=/)
})

/** Resolves as soon as the port is open. */
async function firstConnection(port: number): Promise<Socket> {
  return await until('an open port', async () => {
    const socket = connect(port, '127.0.0.1')
    return await once(socket, 'connect').then(
      () => socket.on('error', () => {}),
      () => undefined,
    )
  })
}

test('with --stop-with-stdin a server stops when its standard input ends', async () => {
  const { code, output } = await refuse({ OPENHANDS_MASTER_KEY: RANDOM_KEY }, ['--stop-with-stdin'])
  expect(code, output).toBe(0)
  expect(output).toContain('end of stdin')
})

test('a port in use is reported in one line', async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const { code, output } = await refuse({
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_SERVER_HOST: 'localhost',
    OPENHANDS_SERVER_PORT: String(port),
  })
  listener.close()
  expect(code).toBe(1)
  expect(output).toMatch(new RegExp(`agent-server: port ${port} on 127.0.0.1 is in use; .* --port or .*\\n$`))
  expect(output).not.toContain('Server listening')
})

test('a second server on the same data is refused; the lock that a kill leaves does not prevent a start', async () => {
  await using server = await startServer()
  const port = String(await freePort())
  const { code, output } = await refuse({
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_DATA_DIR: server.dataDir,
    OPENHANDS_SERVER_PORT: port,
  })
  expect(code).toBe(1)
  expect(output).toMatch(/agent-server: .* is in use by another server/)

  await server.restart('SIGKILL')
  expect((await server.call('GET', '/info')).status).toBe(200)
})

test('a data directory that a newer version wrote is refused', async () => {
  await using server = await startServer()
  await server.stop()
  await writeFile(join(server.dataDir, 'version'), '999\n')
  const { code, output } = await refuse({ OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: server.dataDir })
  expect(code).toBe(1)
  expect(output).toMatch(/newer/)
})

test('a kept key that cannot be used is reported with its file', async () => {
  const dataDir = await mkdtemp(join(home, 'kept-'))
  await writeFile(join(dataDir, 'master-key'), 'hunter2\n')
  const { code, output } = await refuse({ OPENHANDS_DATA_DIR: dataDir }, ['--generate-key'])
  expect(code).toBe(2)
  expect(output).toBe(
    `agent-server: The key in ${join(dataDir, 'master-key')} must have at least 16 characters. Remove the file, and the next start makes a new key.\n`,
  )
})

test('--generate-key makes a key at first use, keeps it for its owner only, says where but never prints it, and uses it again', async () => {
  const dataDir = join(home, 'generated')
  const keys: string[] = []
  for (const start of ['first', 'second']) {
    const port = await freePort()
    const { child, exited, output } = launch(['serve', '--generate-key', '--port', String(port)], {
      env: { OPENHANDS_DATA_DIR: dataDir },
      cwd: home,
    })
    const url = `http://127.0.0.1:${port}`
    while (!output().includes('"msg":"ready"'))
      await Promise.race([once(child.stdout!, 'data'), exited.then(() => expect.fail(output()))])
    const path = join(dataDir, 'master-key')
    const key = (await readFile(path, 'utf8')).trim()
    keys.push(key)
    const ready = JSON.parse(/.*"msg":"ready".*/.exec(output())![0])
    const isNew = start === 'first' ? ' (made now)' : ''
    expect(ready).toMatchObject({ url, docs: `${url}/docs`, master_key: `${path}${isNew}`, data_dir: dataDir })
    expect(output()).not.toContain(key)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await fetch(`${url}/info`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200)
    child.kill('SIGINT')
    expect(await exited).toBe(0)
  }
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
  expect(keys[1]).toBe(keys[0])
})

test('the start warns plainly that commands run on the host without a sandbox, and says why', async () => {
  await using chosen = await startServer({ env: { OPENHANDS_ISOLATION: 'none' } })
  await expect
    .poll(chosen.output)
    .toMatch(/commands run on this host, as this user, without a sandbox \(OPENHANDS_ISOLATION has the value none\)/)
  await using without = await startServer({ env: { PATH: '/nowhere' } })
  await expect.poll(without.output).toMatch(/without a sandbox \(bubblewrap is not installed/)
  for (const server of [chosen, without]) expect((await server.call('GET', '/info')).body.isolation).toBe('none')
})

test('with bubblewrap installed there is a sandbox, and no such warning', async () => {
  await using server = await startServer()
  expect(server.output()).not.toMatch(/without a sandbox \(/)
  expect((await server.call('GET', '/info')).body.isolation).toBe('bubblewrap')
})

test('a key read from a file works', async () => {
  const file = join(home, 'key')
  await writeFile(file, `${KEY}\n`)
  await using server = await startServer({ env: { OPENHANDS_MASTER_KEY: '', OPENHANDS_MASTER_KEY_FILE: file } })
  expect((await server.call('GET', '/info')).status).toBe(200)
})

test.runIf(hasFiles)(
  'a start listens before it has read the conversations, and answers 503 for all that needs them',
  async () => {
    await using server = await startServer()
    const { body } = await server.call('POST', '/conversations', { title: 'One', llm_config: { model: 'none' } })
    await server.stop()
    // What is to be read has no end until somebody writes to it.
    const fifo = join(server.dataDir, 'sessions', body.id, 'meta.json')
    await rm(join(server.dataDir, 'summaries.db'))
    execFileSync('mkfifo', [fifo])
    const started = server.restart()
    await expect.poll(() => server.call('GET', '/alive').catch(() => undefined)).toMatchObject({ status: 200 })
    expect(await server.call('GET', '/ready')).toMatchObject({ status: 503, body: { reason: 'starting' } })
    expect((await server.call('GET', '/info')).status).toBe(200)
    const refused = await server.call('GET', `/conversations/${body.id}`)
    expect(refused).toMatchObject({ status: 503, body: { error: 'unavailable', details: { reason: 'starting' } } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await writeFile(fifo, '')
    await started
    expect(await server.call('GET', '/ready')).toMatchObject({ status: 200 })
    expect((await server.call('GET', '/conversations')).body.items).toMatchObject([{ id: body.id, title: 'One' }])
  },
)

test('a server has as many threads for files as are configured', async () => {
  await using server = await startServer()
  const names = await Promise.all(
    (await readdir(`/proc/${server.pid}/task`)).map((id) => readFile(`/proc/${server.pid}/task/${id}/comm`, 'utf8')),
  )
  expect(names.filter((name) => name.startsWith('libuv-worker'))).toHaveLength(16)
})

/** Notes what is loaded of Node from the first change of V8's flags until they are those of its build again. */
const NOTE_LATE_MODULES = `
  const v8 = require('node:v8')
  const { builtinModules } = require('node:module')
  const set = v8.setFlagsFromString
  let before
  v8.setFlagsFromString = (flag) => {
    before ??= new Set(process.moduleLoadList)
    set(flag)
    const late = process.moduleLoadList.filter((name) => !before.has(name)).map((name) => name.replace('NativeModule ', ''))
    if (flag === '--turbofan') console.error('loaded late: ' + late.filter((name) => builtinModules.includes(name)))
  }`

test('a start loads what it uses of Node before the flags of V8 change, so that Node does not compile it again', async () => {
  const program = join(home, 'note-late-modules.cjs')
  await writeFile(program, NOTE_LATE_MODULES)
  const env = {
    OPENHANDS_DATA_DIR: join(home, 'late'),
    OPENHANDS_SERVER_PORT: '0',
    NODE_OPTIONS: `--require=${JSON.stringify(program)}`,
  }
  const { child, exited, output } = launch(['serve', '--generate-key'], { env, cwd: home })
  const late = await until('the end of the preparation', async () => /^loaded late: (.*)$/m.exec(output())?.[1])
  child.kill()
  await exited

  // Two that are hardly longer than their names.
  expect(late.split(',').filter((name) => name !== 'sea' && name !== 'path/posix')).toEqual([])
})
