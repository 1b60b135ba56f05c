/** What a person sees who starts the server at a terminal, and what a supervisor gets who starts it without one. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { hasFiles, freePort, launch } from '../support/server.ts'

const KEY = 'f1e2d3c4b5a697887766554433221100'
const OTHER_KEY = '00112233445566778897a6b5c4d3e2f1'

let home: string
beforeAll(async () => void (home = await mkdtemp(join(tmpdir(), 'agent-server-output-'))))
afterAll(() => rm(home, { recursive: true, force: true, maxRetries: 3 }))

/** Under `script`, which gives it a terminal. */
const AT_TERMINAL = ['script', '--quiet', '--return', '/dev/null', '--command']

test('at a terminal the start tells version, URL, docs, key, model, isolation and data, and logs readable lines', async () => {
  const port = await freePort()
  const dataDir = join(home, 'data')
  const { child, exited, output } = launch([], {
    wrapper: [
      'bash',
      '-c',
      `exec ${AT_TERMINAL.join(' ')} "$(printf '%q ' "$@") serve --host 127.0.0.1 --port ${port}"`,
      'bash',
    ],
    env: {
      OPENHANDS_MASTER_KEY: KEY,
      OPENHANDS_DATA_DIR: dataDir,
      OPENHANDS_UNHEARD_OF: 'x',
      OPENHANDS_PORT: '80',
      NO_COLOR: '1',
    },
    cwd: home,
  })
  await expect.poll(output).toContain('Try it:')
  const url = `http://127.0.0.1:${port}`
  await fetch(`${url}/info`, { headers: { authorization: `Bearer ${KEY}` } })
  await expect.poll(output).toMatch(/\[\d\d:\d\d:\d\d\] INFO: GET \/info 200 [\d.]+ ms/)
  const said = output().replaceAll('\r', '')
  expect(said).toMatch(/^ {2}agent-server \d+\.\d+\.\d+$/m)
  expect(said).toContain(`  URL         ${url}\n`)
  expect(said).toContain(`  Dashboard   ${url}/ui/ (`)
  expect(said).toContain(`  Docs        ${url}/docs\n`)
  expect(said).toContain('  Master key  OPENHANDS_MASTER_KEY\n')
  expect(said).toMatch(/^ {2}Model {7}none: set LLM_MODEL/m)
  expect(said).toMatch(/^ {2}Isolation {3}(bubblewrap|none)/m)
  expect(said).toContain(`  Data        ${dataDir}\n`)
  expect(said).toContain(`curl -H "Authorization: Bearer $OPENHANDS_MASTER_KEY" ${url}/info`)
  expect(said).toMatch(/this server has no such variables: [^\n]*OPENHANDS_UNHEARD_OF/)
  expect(said).toContain('OPENHANDS_PORT (did you mean OPENHANDS_SERVER_PORT?)')
  expect(said).not.toContain(KEY)
  expect(said).not.toContain('{"level"')
  child.kill('SIGTERM')
  await exited
})

test('without one every line is JSON', async () => {
  const port = String(await freePort())
  const { child, exited, output } = launch(['serve', '--host', 'localhost', '--port', port], {
    env: { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: join(home, 'other') },
    cwd: home,
  })
  await expect.poll(output).toContain('"msg":"ready"')
  // As a closed terminal does.
  for (let times = 0; times < 2; times++) child.kill('SIGHUP')
  expect(await exited).toBe(0)
  expect(output()).toContain('"signal":"SIGHUP"')
  // The path that other programs use, and not that of a descriptor of the server.
  expect(output()).toMatch(/Server listening at unix:\/(?!proc\/self)/)
  for (const line of output().trim().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ level: 'info', msg: expect.any(String) })
})

test('a server whose log is not read continues, and stops in time with exit code 0', async () => {
  const port = String(await freePort())
  const { child, exited, output } = launch(['serve', '--host', '127.0.0.1', '--port', port], {
    env: { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: join(home, 'unread') },
    cwd: home,
  })
  await expect.poll(output).toContain('"msg":"ready"')
  child.stdout?.pause()
  const ask = () => fetch(`http://127.0.0.1:${port}/info`, { headers: { authorization: `Bearer ${KEY}` } })
  // More than the pipe and its two ends hold.
  for (let round = 0; round < 40; round++)
    await Promise.all(Array.from({ length: 50 }, async () => await (await ask()).text()))
  child.kill('SIGTERM')
  const stopped = once(child, 'exit')
  expect(await stopped).toEqual([0, null])
  child.stdout?.resume()
  await exited
})

test('a server whose log cannot be written says so once, and continues', async () => {
  const port = String(await freePort())
  const { child, exited, output } = launch(['serve', '--host', '127.0.0.1', '--port', port], {
    wrapper: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'],
    env: { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: join(home, 'lost') },
    cwd: home,
  })
  const answered = () =>
    fetch(`http://127.0.0.1:${port}/ready`).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(answered).toBe(200)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  expect(output()).toBe('agent-server: the output cannot be written (ENOSPC); continuing without it.\n')
})

test('a misspelt option is one line and exit code 2', async () => {
  const { exited, output } = launch(['serve', '--prot', '80'], { cwd: home })
  expect(await exited).toBe(2)
  expect(output()).toBe('agent-server: there is no option --prot; did you mean --port? See agent-server --help.\n')
})

test('`key` prints the key that the server uses, for scripts', async () => {
  const { exited, output } = launch(['key'], { env: { OPENHANDS_MASTER_KEY: KEY }, cwd: home })
  expect(await exited).toBe(0)
  expect(output()).toBe(`${KEY}\n`)
  const none = launch(['key'], { env: { OPENHANDS_DATA_DIR: join(home, 'nothing') }, cwd: home })
  expect(await none.exited).toBe(2)
  expect(none.output()).toMatch(/There is no key in .* yet/)
})

test.runIf(hasFiles)(
  'another master key causes no warning until something was encrypted; then one line tells how to read it again',
  async () => {
    const locked = /encrypted with another key[^\n]*OPENHANDS_MASTER_KEY=new,old or OPENHANDS_SECRET_KEY=new,old/
    await using stage = await setStage({ replies: [] }, { env: { OPENHANDS_MASTER_KEY: KEY } })
    const { server } = stage
    const authorization = (key: string) => ({ authorization: `Bearer ${key}` })
    await server.restart('SIGTERM', { OPENHANDS_MASTER_KEY: OTHER_KEY })
    const body = { llm_config: { model: 'none' }, secrets: { TOKEN: 'a-secret-worth-keeping' } }
    expect((await server.call('POST', '/conversations', body, authorization(OTHER_KEY))).status).toBe(201)
    expect(server.output()).not.toMatch(locked)
    await server.restart('SIGTERM', { OPENHANDS_MASTER_KEY: KEY })
    await expect.poll(server.output).toMatch(locked)
  },
)
