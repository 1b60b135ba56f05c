/** What is on the machine after a server has ended, in each way it can end: the data of conversations, and nothing else. */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { mkdtempDisposable, readdir, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OWN_DIRECTORIES } from '../../src/config/paths.ts'
import { isDraftName } from '../../src/lib/durable-file.ts'
import { markedProcesses } from '../support/marked.ts'
import { hasFiles, KEY, launch, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'

async function namesIn(directory: string): Promise<string[]> {
  const names: string[] = await readdir(directory, { recursive: true }).catch(() => [])
  return names.sort()
}

/** Longer ago than any start takes. */
async function writeLongAgo(path: string): Promise<void> {
  await writeFile(path, HALF)
  const time = Date.now() / 1000 - 3600
  await utimes(path, time, time)
}

/** Sends the head and a part of the body of an upload. */
function beginUpload({ url }: TestServer, path: string) {
  const { hostname, port } = new URL(url)
  const head = [`PUT ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${KEY}`, 'Content-Length: 100000']
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.write(`${head.join('\r\n')}\r\n\r\n${'x'.repeat(1000)}`)
}

/** They only look alike. */
const OF_PEOPLE = ['master-key.new', 'master-key.old', 'notes.new']

const [HALF, DRAFT] = ['half', 'meta.json.0123456789ab.new']

test('what a killed server was doing is removed by the next start, without a request', async () => {
  await using server = await startServer({ env: { OPENHANDS_ISOLATION: 'none' } })
  const { dataDir, home, call } = server
  const { id, workdir } = (await call('POST', '/conversations', { llm_config: { model: 'm' } })).body
  const own = join(dataDir, 'sessions', id)
  const run = (body: object) => call('POST', `/conversations/${id}/commands`, body)
  expect((await run({ command: 'export A=1; (sleep 1000 &)', session_id: 'kept' })).body).toMatchObject({
    exit_code: 0,
  })
  expect((await run({ command: 'sleep 1000', background: true })).status).toBe(202)
  beginUpload(server, `/conversations/${id}/files/big`)
  await expect.poll(() => namesIn(workdir)).toEqual([expect.stringMatching(/^\.upload-/)])
  // It is killed between other steps, too, which take too short a time to wait for them.
  for (const directory of [own, join(own, 'commands')]) await writeFile(join(directory, DRAFT), HALF)
  await writeFile(join(own, 'outputs', 'stdout-0.txt.new'), HALF)
  for (const name of ['tables.db.new', 'keys.json.new', '.ready']) await writeFile(join(dataDir, name), HALF)
  const ofStarts = ['master-key.0123456789ab.new', `hidden-files.${randomUUID()}.new`, `.seccomp-${randomUUID()}`]
  for (const name of [...ofStarts, ...OF_PEOPLE]) await writeLongAgo(join(dataDir, name))
  await server.stop('SIGKILL')
  await writeFile(join(dataDir, 'hidden-files.0123456789ab.new'), HALF)
  await server.restart()
  await expect.poll(() => namesIn(join(dataDir, 'unfinished'))).toEqual([])
  expect(await namesIn(workdir)).toEqual([])
  const ofShells = await namesIn(join(own, 'shells'))
  // The state may have been saved by then.
  expect(ofShells.filter((name) => !['kept', 'kept/state'].includes(name))).toEqual([])
  expect(await namesIn(join(own, 'outputs'))).toEqual([])
  expect(await namesIn(own)).not.toContain(DRAFT)
  expect(await namesIn(join(own, 'commands'))).not.toContain(DRAFT)
  const others = (await readdir(dataDir)).filter((name) => /[.](new|old|ready|seccomp)/.test(name)).sort()
  // A program that starts at the same time may be writing the first one.
  expect(others).toEqual(['hidden-files.0123456789ab.new', ...OF_PEOPLE])
  // A setting refuses workdirs in those of the server.
  const entries = await readdir(dataDir, { withFileTypes: true })
  const made = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  expect([...OWN_DIRECTORIES, 'work']).toEqual(expect.arrayContaining(made))
  expect(await readdir(home)).toEqual(['data'])
  expect(await call('GET', `/conversations/${id}`)).toMatchObject({ status: 200 })
})

test.runIf(hasFiles)(
  'a server that stops leaves its data; one that cannot start leaves nothing, and changes nothing of the other',
  async () => {
    await using home = await mkdtempDisposable(join(tmpdir(), 'home-'))
    const env = { HOME: home.path, XDG_RUNTIME_DIR: home.path }
    await using server = await startServer({ env })
    const { dataDir } = server
    const { id } = (await server.call('POST', '/conversations', { llm_config: { model: 'm' } })).body
    for (const title of ['Noted', 'Again']) await server.call('PUT', `/conversations/${id}/config`, { title })
    await expect.poll(() => namesIn(join(dataDir, 'sessions', id))).toContain('meta.json')

    const names = async () => (await namesIn(dataDir)).filter((name) => !isDraftName(name))
    const running = await names()
    const other = { ...env, OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: dataDir, OPENHANDS_SERVER_PORT: '0' }
    const refused = launch(['serve'], { env: other })
    expect([await refused.exited, refused.output()]).toEqual([
      1,
      expect.stringContaining('is in use by another server'),
    ])
    const { port } = new URL(server.url)
    const taken = launch(['serve', '--host', '127.0.0.1', '--port', port], {
      env: { ...other, OPENHANDS_DATA_DIR: join(home.path, 'd') },
    })
    expect([await taken.exited, taken.output()]).toEqual([1, expect.stringContaining('is in use')])
    expect(await names()).toEqual(running)

    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const command = { command: 'cat; (sleep 1000 &)', stdin: 'x' }
      expect((await server.call('POST', `/conversations/${id}/commands`, command)).status).toBe(200)
      expect(await server.stop(signal)).toBe(0)
      expect(markedProcesses(id)).toEqual([])
      const left = await namesIn(dataDir)
      expect(
        left.filter((name) => /local[.]json|sock|[.]new$|command$|std(in|out|err)-|^active[/]/.test(name)),
      ).toEqual([])
      await server.restart()
    }
    expect(await namesIn(home.path)).toEqual([])
    expect((await namesIn('/dev/shm')).filter((name) => name.startsWith('.seccomp'))).toEqual([])
  },
)
