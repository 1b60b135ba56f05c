import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { isTrusted, readLocalRecord, writeLocalRecord } from '../../src/access/local-record.ts'
import { createLocalFetch } from '../../src/http/local/local-fetch.ts'
import { openPlace } from '../../src/sdk/local/local-place.ts'

const home = await mkdtemp(join(tmpdir(), 'agent-server-record-'))
afterAll(() => rm(home, { recursive: true, force: true }))

const RECORD = { address: 'unix:/nowhere/server.sock', credential: 'asl_x' }
const path = join(home, 'local.json')
beforeEach(() => writeLocalRecord(home, RECORD))

test('a record is readable by its owner only', async () => {
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readLocalRecord(home)).toEqual(RECORD)
})

test.each([
  ['that others may write', () => chmod(path, 0o666), 'others may write it'],
  [
    'behind a symbolic link',
    async () => {
      await rename(path, `${path}.other`)
      await symlink(`${path}.other`, path)
    },
    'ELOOP',
  ],
  [
    'that is a pipe without a writer',
    async () => {
      await rm(path)
      await promisify(execFile)('mkfifo', ['-m', '600', path])
    },
    'not a record',
  ],
  ['that is too large', () => writeFile(path, ' '.repeat(10_000)), 'not a record'],
  ['that is damaged', () => writeFile(path, '{'), 'damaged'],
])('a record %s is refused', async (_what, spoil, why) => {
  await spoil()
  expect(await readLocalRecord(home)).toEqual({ refusal: expect.stringContaining(why) })
  await rm(path)
  expect(await readLocalRecord(home)).toBeUndefined()
})

test('what another user owns is not trusted, except that of the owner of the data directory', () => {
  const me = process.geteuid!()
  expect(isTrusted({ uid: me + 1, mode: 0o100_600 }, [me, me])).toBe(false)
  expect(isTrusted({ uid: me + 1, mode: 0o100_600 }, [me, me + 1])).toBe(true)
  expect(isTrusted({ uid: me, mode: 0o100_660 }, [me, me])).toBe(false)
})

test('a socket is used only if nobody else can have put it there, and stays that one', async () => {
  const directory = join(home, 'local')
  await mkdir(directory, { mode: 0o700 })
  const listen = async (name: string) => {
    const server = createServer((_request, response) => response.end(name)).listen(join(directory, 'server.sock'))
    await once(server, 'listening')
    return server
  }
  const first = await listen('first')
  const record = { ...RECORD, address: `unix:${join(directory, 'server.sock')}` }
  await chmod(directory, 0o777)
  expect(await openPlace(home, record)).toBeUndefined()
  await chmod(directory, 0o700)
  await using opened = await openPlace(home, record)
  await using local = createLocalFetch(opened!.place)
  await rename(directory, `${directory}.away`)
  await mkdir(directory)
  const second = await listen('second')
  expect(await (await local.fetch(`${local.baseUrl}/`)).text()).toBe('first')
  for (const server of [first, second]) server.close()
})
