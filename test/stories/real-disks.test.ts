/** File systems that really are full or read-only: small ones, that the server alone sees. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { KEY, launch } from '../support/server.ts'

const SIZE_BYTES = 1024 * 1024
/** Over a directory of this file: the clone, or what else the tests need, may be anywhere else. */
const MOUNT = mkdtempSync(join(tmpdir(), 'disk-'))
afterAll(() => rm(MOUNT, { recursive: true }))

const OWN_DISK = [
  'bwrap',
  '--die-with-parent',
  '--unshare-user',
  // Only root mounts something there, as whom nobody else has more rights.
  '--uid',
  '0',
  '--gid',
  '0',
  '--dev-bind',
  '/',
  '/',
  '--size',
  String(SIZE_BYTES),
  '--tmpfs',
  MOUNT,
]
const ON_IT = { OPENHANDS_DATA_DIR: `${MOUNT}/data`, OPENHANDS_ISOLATION: 'none' }

const SCRIPT = [{ text: 'Hello.' }]
const KEY_REQUEST = { name: 'k', scopes: ['read'] }
const message = (text: string) => ({ message: { role: 'user', content: text } })

/** The server itself: what was started waits for it, outside. */
async function pidOf({ pid }: { pid: number }): Promise<number> {
  return Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ')[0])
}

/** Runs a command where the server's own disk is. */
async function besides(server: { pid: number }, command: string): Promise<void> {
  const enter = ['-t', String(await pidOf(server)), '-U', '-m', '--preserve-credentials']
  await promisify(execFile)('nsenter', [...enter, 'sh', '-ec', command])
}

test('a disk that is full to the last byte: what is refused leaves nothing behind, what was acknowledged stays', async () => {
  await using stage = await setStage(SCRIPT, { wrapper: OWN_DISK, env: ON_IT })
  const { server } = stage
  const [id, other] = [await stage.create(), await stage.create()]
  const disk = `/proc/${await pidOf(server)}/root${MOUNT}`
  const ballast = `${disk}/ballast`
  const { bavail, bsize } = await statfs(disk)
  await writeFile(ballast, Buffer.alloc((bavail - 4) * bsize))

  const acknowledged: string[] = []
  const post = async (size: number) => {
    const answer = await server.call('POST', `/conversations/${id}/messages`, message('x'.repeat(size)))
    if (answer.status === 202) acknowledged.push(answer.body.event_id)
    else expect(answer).toMatchObject({ status: 507, body: { error: 'storage_full' } })
    return answer.status
  }
  let refused = 0
  for (let i = 0; i < 40; i++) refused += (await post(1500)) === 507 ? 1 : 0
  expect(refused, 'the disk was full').toBeGreaterThan(0)
  expect(acknowledged.length, 'and at first it was not').toBeGreaterThan(0)
  const made = await server.call('POST', '/conversations', { llm_config: { model: 'm', base_url: 'http://x.invalid' } })
  expect(made).toMatchObject({ status: 507, body: { error: 'storage_full' } })
  expect(await server.call('POST', '/keys', KEY_REQUEST)).toMatchObject({
    status: 507,
    body: { error: 'storage_full' },
  })
  expect((await server.call('DELETE', `/conversations/${other}`)).status, 'deleting makes room').toBe(204)
  expect((await server.call('GET', '/conversations')).body.items).toHaveLength(1)
  expect((await server.call('GET', '/keys')).body.items).toEqual([])

  await rm(ballast)
  expect(await post(5)).toBe(202)
  expect((await server.call('POST', '/keys', KEY_REQUEST)).status).toBe(201)
  const events = await stage.events(id)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
  const messages = events.filter(({ type }) => type === 'UserMessage').map((event) => event.id)
  expect(messages).toEqual(acknowledged)
})

test('a disk that turns read-only: it is reported, existing data can be read, and writable again it continues', async () => {
  await using stage = await setStage(SCRIPT, { wrapper: OWN_DISK, env: ON_IT })
  const { server } = stage
  const id = await stage.create()
  // Over it, for what has files open: those of the log and the lock, which a remount would wait for.
  await besides(server, `mount --bind ${MOUNT} ${MOUNT}; mount -o remount,bind,ro ${MOUNT}`)
  const llm_config = { model: 'm', base_url: 'http://x.invalid' }
  const refused = [
    await server.call('POST', '/conversations', { llm_config }),
    await server.call('POST', `/conversations/${id}/messages`, { ...message('x'), run: true }),
    await server.call('POST', `/conversations/${id}/commands`, { command: 'true' }),
    await server.call('POST', '/keys', KEY_REQUEST),
    await server.call('DELETE', `/conversations/${id}`),
  ]
  for (const { status, body } of refused) {
    expect({ status, ...body }).toMatchObject({
      status: 500,
      error: 'storage_failed',
      message: expect.stringContaining('EROFS'),
    })
  }
  expect((await server.call('GET', `/conversations/${id}`)).body).toMatchObject({ id, status: 'idle' })
  await besides(server, `umount ${MOUNT}`)
  expect((await server.call('POST', '/keys', KEY_REQUEST)).status).toBe(201)
  expect((await stage.say(id, 'hi')).at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'idle' })
})

test('a data directory on a read-only disk is refused at the start, in one line', async () => {
  const wrapper = ['bwrap', '--dev-bind', '/', '/', '--ro-bind', '/usr', MOUNT]
  const env = { ...ON_IT, OPENHANDS_MASTER_KEY: KEY, OPENHANDS_SERVER_PORT: '0' }
  const { exited, output } = launch(['serve'], { wrapper, env })
  expect(await exited).toBe(2)
  expect(output().trim().split('\n')).toHaveLength(1)
  expect(output()).toContain('EROFS')
})
