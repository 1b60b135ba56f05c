/** The contract of a storage, on real files; and what is true of files alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openFileStorage } from '../../../src/storage/files/file-storage.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { tempDirectory } from '../../events/fixtures.ts'
import { storageContract } from '../storage-contract.ts'
import { expectAll } from '../workload.ts'

const KEYS = ['key of the operator'] as const
const onFault = (error: unknown) => {
  throw error
}
const open = (directory: string, operatorKeys: readonly [string, ...string[]] = KEYS) =>
  openFileStorage({ directory, operatorKeys, onFault })

storageContract('The file storage', async () => {
  const directory = await tempDirectory()
  return {
    open: (keys) => open(join(directory.path, 'data'), keys),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
})

test('a directory that was replaced under the server gets no new conversations, and no conversation in it is opened', async () => {
  await using directory = await tempDirectory()
  const data = join(directory.path, 'data')
  await using storage = await open(data)
  await rename(data, join(directory.path, 'moved'))
  const moved = { code: 'storage_failed', message: expect.stringContaining('moved, removed or replaced') }
  await expect(storage.conversation(uuid7()).reserve()).rejects.toMatchObject(moved)
  await using _another = await open(data)
  await expect(storage.conversation(uuid7()).reserve()).rejects.toMatchObject(moved)
  await expect(storage.conversation(uuid7()).openLog()).rejects.toMatchObject(moved)
})

test('what cannot be looked up is an error, and never something that does not exist', async () => {
  await using directory = await tempDirectory()
  await using storage = await open(directory.path)
  const id = uuid7()
  // A name that leads to itself can never be resolved.
  await symlink(id, join(directory.path, 'sessions', id))
  await expect(storage.conversation(id).exists()).rejects.toMatchObject({ code: 'ELOOP' })
  expect(await storage.conversation(uuid7()).exists()).toBe(false)
  await rm(join(directory.path, 'tables.db'))
  await expect(storage.deletions.has(id)).rejects.toMatchObject({ code: 'EIO' })
})

test('what was acknowledged survives kill -9, whole, and the next process opens it', async () => {
  await using directory = await tempDirectory()
  let output = ''
  for (let round = 0; round < 3; round++) {
    const server = spawn(process.execPath, [join(import.meta.dirname, 'children/work-until-killed.ts'), directory.path])
    const end = output.length + 4000 + 1700 * round
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      // Which conversations are deleted is chance; one is at least.
      if (output.length > end && output.includes('"deleted"')) server.kill('SIGKILL')
    })
    await once(server, 'close')
    output = output.slice(0, output.lastIndexOf('\n') + 1)
    await using storage = await open(directory.path)
    const counts = await expectAll(storage, output)
    for (const [step, count] of Object.entries(counts)) expect(count, step).toBeGreaterThan(0)
  }
})

test('the files have the same paths in every version, and only their owner may read them', async () => {
  await using directory = await tempDirectory()
  await mkdir(join(directory.path, 'real'))
  await symlink(join(directory.path, 'real'), join(directory.path, 'link'))
  await using storage = await open(join(directory.path, 'link'))
  const own = storage.conversation(uuid7())
  const { id } = own
  expect(own.directory, 'by its real path').toBe(join(directory.path, 'real/sessions', id))
  await own.reserve()
  await own.createLog({ env: { A: 'b' } })
  await storage.snapshots.write(own.id, { n: 1 })
  await own.callbacks.write({ n: 2 })
  await own.commands.write({ id, keyHash: '0123456789abcdef' }, { n: 3 }, { durable: true })
  const other = uuid7()
  await own.commands.write({ id: other, keyHash: undefined }, { n: 4 }, { durable: false })
  await storage.active.set(id)
  await storage.due.set(id)
  await storage.deletions.mark(id, { key: 'k', bodyHash: 'h', id, at: new Date().toISOString() })
  await storage.sharedWorkdirs.add('/work', [id])
  const root = join(directory.path, 'real')
  const files = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
  const shown = paths.map((path) => path.replaceAll(id, '<id>').replace(other, '<other>'))
  expect(shown.filter((path) => !path.includes('lock.db')).toSorted()).toEqual([
    'active/<id>',
    'data-keys',
    'due/<id>',
    'sessions/<id>/callbacks.json',
    'sessions/<id>/commands/<id>.0123456789abcdef.json',
    'sessions/<id>/commands/<other>.json',
    'sessions/<id>/events.jsonl',
    'sessions/<id>/meta.json',
    'sessions/<id>/secrets.enc',
    'tables.db',
    'tables.db-journal',
    'version',
  ])
  for (const path of paths.filter((each) => !each.includes('lock.db')))
    expect((await stat(join(root, path))).mode & 0o077, path).toBe(0)
  expect(await readFile(join(own.directory, 'meta.json'), 'utf8')).toBe('{"n":1}')
})

test('nothing of a forgotten summary is in the file, also in the process that made the file', async () => {
  await using directory = await tempDirectory()
  await using storage = await open(directory.path)
  const ids = [uuid7(), uuid7()]
  for (const id of ids) {
    await storage.conversation(id).reserve()
    await (await storage.conversation(id).createLog({})).close()
    const times = { createdAt: 1, updatedAt: 2 }
    const texts = {
      title: `title of ${id}`,
      userId: undefined,
      profile: undefined,
      labels: [],
      fields: {},
      preview: '',
      lastWords: '',
      model: undefined,
      costUsd: undefined,
      isArchived: false,
      waiting: 0,
      waitsSince: undefined,
      deadline: undefined,
      idempotency: undefined,
    }
    storage.summaries.noteFor(id)({ id, status: 'idle', lastSeq: 0, ...times, ...texts })
  }
  await storage.summaries.forget(ids[0]!)
  await storage.settled()
  const text = await readFile(join(directory.path, 'summaries.db'), 'utf8')
  expect([text.includes(ids[0]!), text.includes(`title of ${ids[1]!}`)]).toEqual([false, true])
})

test('a damaged value is distinguished from a missing one, and stays for the operator when it is set aside', async () => {
  await using directory = await tempDirectory()
  await using storage = await open(directory.path)
  const own = storage.conversation(uuid7())
  await own.reserve()
  expect(await own.callbacks.read()).toBeUndefined()
  await writeFile(join(own.directory, 'callbacks.json'), '{"torn')
  expect(await own.callbacks.read()).toBeNull()
  expect(await readFile(await own.callbacks.setAside(), 'utf8')).toBe('{"torn')
  await writeFile(join(own.directory, 'meta.json'), '{"torn')
  expect(await storage.snapshots.read(own.id)).toBeUndefined()
})
