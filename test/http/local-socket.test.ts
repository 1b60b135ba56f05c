import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtempDisposable, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { placeOfSocket, removeLeftSocket } from '../../src/http/local/local-socket.ts'

const temporary = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('agent-server-local-'))

/** In the place of the socket directory of `dataDir` is a link. */
async function stage() {
  const home = await mkdtempDisposable(join(tmpdir(), 'socket-'))
  const [dataDir, other] = [join(home.path, 'data'), join(home.path, 'other')]
  await Promise.all([mkdir(dataDir), mkdir(other)])
  await symlink(other, join(dataDir, 'local'))
  return { dataDir, [Symbol.asyncDispose]: () => home.remove() }
}

async function listenAt(path: string): Promise<AsyncDisposable> {
  const server = createServer().listen(path)
  await once(server, 'listening')
  const close = async () => {
    server.close()
    await once(server, 'close')
  }
  return { [Symbol.asyncDispose]: close }
}

/** As a server that was killed does. */
async function leave(path: string): Promise<void> {
  await mkdir(dirname(path))
  await writeFile(path, 'a socket at which nobody listens')
}

async function usedBy(dataDir: string): Promise<string> {
  await using place = await placeOfSocket(dataDir)
  await using _listening = await listenAt(place.listenAt)
  return place.path
}

test('the directory that a killed server has left is used by the next one, and removed at its end', async () => {
  await using own = await stage()
  const path = await usedBy(own.dataDir)
  expect(await temporary()).toEqual([])
  await leave(path)
  expect(await usedBy(own.dataDir)).toBe(path)
  expect(await temporary()).toEqual([])
})

test('one in another temporary directory is found by the record, unless somebody listens there', async () => {
  await using own = await stage()
  const path = await usedBy(own.dataDir)
  await leave(path)
  await removeLeftSocket(path)
  expect(await temporary()).toEqual([])
  await mkdir(dirname(path))
  {
    await using _original = await listenAt(path)
    // The record of a copied data directory names the socket of the original.
    await removeLeftSocket(path)
    expect((await stat(path)).isSocket()).toBe(true)
    expect(await usedBy(own.dataDir), 'another directory is used meanwhile').not.toBe(path)
  }
  await removeLeftSocket(path)
  expect(await temporary()).toEqual([])
})

test.runIf(process.geteuid?.() === 0)('what another user has put there is neither used nor removed', async () => {
  await using own = await stage()
  const path = await usedBy(own.dataDir)
  await leave(path)
  await chmod(dirname(path), 0o777)
  await chown(dirname(path), 65534, 65534)
  expect(await usedBy(own.dataDir)).not.toBe(path)
  await removeLeftSocket(path)
  expect(await readdir(dirname(path))).toEqual(['server.sock'])
  await chown(dirname(path), 0, 0)
  await writeFile(join(dirname(path), 'notes'), 'of a person')
  await removeLeftSocket(path)
  expect(await readdir(dirname(path)), 'only the socket is removed').toEqual(['notes'])
  const target = join(own.dataDir, 'target')
  await mkdir(target)
  const link = join(tmpdir(), 'agent-server-local-link')
  await symlink(target, link)
  await writeFile(join(target, 'server.sock'), '')
  await removeLeftSocket(join(link, 'server.sock'))
  expect(await readdir(target), 'links are not followed').toEqual(['server.sock'])
  await Promise.all([rm(link), rm(dirname(path), { recursive: true })])
})
