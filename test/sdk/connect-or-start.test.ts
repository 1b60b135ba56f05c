import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { readLocalRecord } from '../../src/access/local-record.ts'
import type { LocalServer } from '../../src/sdk/local/connect-or-start.ts'
import { connectOrStart } from '../../src/sdk/local/connect-or-start.ts'
import { startServer } from '../support/server.ts'
import { borrowServer } from '../support/shared-server.ts'

const home = await mkdtemp(join(tmpdir(), 'agent-server-sdk-'))
afterAll(() => rm(home, { recursive: true, force: true }))

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
const count = async ({ baseUrl, fetch, credential }: LocalServer) => {
  const answer = await fetch(`${baseUrl}/conversations/count`, { headers: { authorization: `Bearer ${credential}` } })
  return { status: answer.status, body: await answer.json() }
}

test('the first starts the server, further ones connect to it, and the record ends with it', async () => {
  const dataDir = join(home, 'first')
  const servers = await Promise.all([1, 2, 3].map(() => connectOrStart(dataDir)))
  expect(servers.filter(({ isOwn }) => isOwn)).toHaveLength(1)
  for (const server of servers) expect(await count(server)).toEqual({ status: 200, body: { count: 0 } })
  const record = await readLocalRecord(dataDir)
  expect(servers.map(({ address, credential }) => ({ address, credential }))).toEqual([record, record, record])
  const socket = servers[0]!.address.replace('unix:', '')
  expect(await Promise.all([modeOf(join(dataDir, 'local.json')), modeOf(dirname(socket))])).toEqual(['600', '700'])
  const own = servers.find(({ isOwn }) => isOwn)!
  expect((await own.fetch(`${own.baseUrl}/conversations/count`)).status, 'without the credential').toBe(401)
  for (const server of servers) await server[Symbol.asyncDispose]()
  expect(await readLocalRecord(dataDir)).toBeUndefined()
  expect(await readdir(dirname(socket))).toEqual([])
})

test('a server that is running is used; after a kill the next one starts, with another credential', async () => {
  await using server = await startServer()
  const first = await connectOrStart(server.dataDir)
  expect([first.isOwn, (await count(first)).status]).toEqual([false, 200])
  await server.stop('SIGKILL')
  const left = await readLocalRecord(server.dataDir)
  expect(left, 'the record is left over').toMatchObject({ credential: first.credential })
  await first[Symbol.asyncDispose]()
  await using second = await connectOrStart(server.dataDir)
  expect([second.isOwn, (await count(second)).status]).toEqual([true, 200])
  expect(second.credential).not.toBe(first.credential)
  expect(server.output()).not.toContain(first.credential)
})

test('a socket is also reached at a path that is longer than sockets may have; no file is left open', async () => {
  const dataDir = join(home, 'x'.repeat(60), 'y'.repeat(60))
  const server = await connectOrStart(dataDir)
  await using other = await connectOrStart(dataDir)
  const socket = server.address.replace('unix:', '')
  // Elsewhere it is in a temporary directory.
  if (process.platform === 'linux') expect(socket).toBe(join(dataDir, 'local', 'server.sock'))
  expect(await modeOf(dirname(socket))).toBe('700')
  expect([other.isOwn, (await count(server)).status, (await count(other)).status]).toEqual([false, 200, 200])
  await other[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  expect(await readdir(tmpdir()), 'temporary directories').toEqual([basename(home)])
  const open = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
  expect((await Promise.all(open)).filter((path) => path.startsWith(dataDir))).toEqual([])
})

test('a link in the place of the socket directory is not followed', async () => {
  const dataDir = join(home, 'linked')
  const elsewhere = join(home, 'elsewhere')
  await Promise.all([mkdir(dataDir), mkdir(elsewhere)])
  await symlink(elsewhere, join(dataDir, 'local'))
  await using server = await connectOrStart(dataDir)
  expect(dirname(dirname(server.address.replace('unix:', '')))).toBe(tmpdir())
  expect([(await count(server)).status, await readdir(elsewhere)]).toEqual([200, []])
})

test('a record that is damaged, or not of a server, is replaced', async () => {
  const dataDir = join(home, 'damaged')
  await mkdir(dataDir)
  for (const content of ['', '{"address":1}', JSON.stringify({ address: `unix:${home}`, credential: 'x' })]) {
    await writeFile(join(dataDir, 'local.json'), content)
    await using server = await connectOrStart(dataDir)
    expect(server.isOwn).toBe(true)
    expect(await readFile(join(dataDir, 'local.json'), 'utf8')).toContain(server.credential)
  }
  expect(await readdir(home), 'the directory that the record named').toContain('damaged')
})

test('a program that only connects does not load the server', async () => {
  await using server = await borrowServer()
  const { dataDir: persistDir } = server
  const children = join(import.meta.dirname, 'children')
  const loadedBy = async (...args: string[]) => {
    const env = { ...process.env, OPENHANDS_DATA_DIR: persistDir }
    const reporter = pathToFileURL(join(children, 'report-modules.ts')).href
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', reporter, ...args], { env })
    return JSON.parse(/^loaded (.*)$/m.exec(stdout)?.[1] ?? '[]') as string[]
  }
  const main = join(import.meta.dirname, '../../src/main.ts')
  for (const loaded of await Promise.all([
    loadedBy(join(children, 'list-sessions.ts'), JSON.stringify({ persistDir })),
    loadedBy(main, 'sessions', 'list'),
  ])) {
    expect(loaded.length).toBeGreaterThan(20)
    expect(
      loaded.filter((url) => /\/src\/(app|tools\/registry|http\/server)\.ts$|\/(undici|fastify|pino)\//.test(url)),
    ).toEqual([])
  }
})
