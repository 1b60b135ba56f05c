/**
 * Chooses the path of the Unix socket for programs of the same user on this machine: in a directory that only this user
 * can enter. It is `local` in the data directory. Only where that cannot be used is it a temporary directory, whose
 * name follows from the data directory, so that the next server there uses the one that a killed server has left. The
 * holder of the data directory calls it, so that everything in there is left over.
 */
import { createHash } from 'node:crypto'
import fs, { constants } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, rmdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, ignoring } from '../../lib/error-code.ts'

/** The shortest limit of the systems is 104 bytes with the zero at the end. */
const MAX_PATH_BYTES = 103

// Bare descriptors: a program that embeds the server may drop it without closing it, and a FileHandle that is collected
// would end the program.
const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const fchmod = promisify(fs.fchmod)
const close = promisify(fs.close)

const FILE = 'server.sock'
const TEMPORARY = 'agent-server-local-'

/** Disposing removes the directory if it is temporary. The socket itself is removed when its server closes. */
export type SocketPlace = AsyncDisposable & {
  readonly path: string
  /** A shorter path of the same place, for this process only. */
  readonly listenAt: string
}

/** Returns a path that does not exist yet. Throws if no directory can be used. */
export async function placeOfSocket(dataDir: string): Promise<SocketPlace> {
  const directory =
    (await openIfFree(join(dataDir, 'local'), { isOurs: true })) ??
    (await openIfFree(join(tmpdir(), TEMPORARY + (await idOf(dataDir))))) ??
    (await openNew())
  if (!directory) throw new Error(`no directory for a socket can be made in ${dataDir}, nor in ${tmpdir()}`)
  const path = join(directory.path, FILE)
  return {
    path,
    listenAt: within(directory, FILE),
    async [Symbol.asyncDispose]() {
      await close(directory.fd)
      await removeTemporary(path)
    },
  }
}

/** Removes the temporary directory that a record names, which a killed server may have left anywhere. */
export async function removeLeftSocket(path: string): Promise<void> {
  if (!isTemporary(path)) return
  // A copy of a data directory has the record of the original, whose server may be running.
  const leftDirectory = await openIfFree(dirname(path), { isThere: true }).catch(() => undefined)
  if (!leftDirectory) return
  await close(leftDirectory.fd)
  await removeTemporary(path)
}

/** Another server uses the directory with the expected name, or another user has made it. */
async function openNew(): Promise<OpenedDirectory | undefined> {
  const path = await mkdtemp(join(tmpdir(), TEMPORARY))
  const openedDirectory = await openIfFree(path).catch(() => undefined)
  if (!openedDirectory) await rmdir(path)
  return openedDirectory
}

type OpenedDirectory = { readonly path: string; readonly fd: number }
type ExpectedSocket = { readonly isOurs?: boolean; readonly isThere?: boolean }

/**
 * Makes the directory, and removes a socket at which nobody listens. Undefined if it is a link, or belongs to another user,
 * who could put another socket there, or if another server uses it. `isOurs`: no other server can.
 */
async function openIfFree(
  path: string,
  { isOurs = false, isThere = false }: ExpectedSocket = {},
): Promise<OpenedDirectory | undefined> {
  if (!isThere) await mkdir(path, { mode: 0o700 }).catch(ignoring('EEXIST'))
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
  const fd = await open(path, flags).catch(() => undefined)
  if (fd === undefined) return undefined
  const openedDirectory = { path, fd }
  try {
    const isOwn = (await fstat(fd)).uid === process.geteuid?.()
    if (isOwn && (await isFree(within(openedDirectory, FILE), { isOurs }))) {
      await fchmod(fd, 0o700)
      await rm(within(openedDirectory, FILE), { force: true })
      return openedDirectory
    }
  } catch (error) {
    await close(fd)
    throw error
  }
  await close(fd)
  return undefined
}

const isFree = async (path: string, { isOurs }: { readonly isOurs: boolean }): Promise<boolean> =>
  Buffer.byteLength(path) <= MAX_PATH_BYTES && (isOurs || !(await isListenedAt(path)))

/** Uses the descriptor where the system can: its path is short, and nobody can put another directory there. */
const within = ({ path, fd }: OpenedDirectory, name: string): string =>
  process.platform === 'linux' ? `/proc/self/fd/${fd}/${name}` : join(path, name)

/** Returns true if a server is there, also if that cannot be found out. */
export function isListenedAt(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(path, () => resolve(true)).on('error', (error) =>
    // A server whose queue is full is alive.
    resolve(!['ENOENT', 'ECONNREFUSED', 'ENOTSOCK'].includes(codeOf(error) ?? '')),
  )
  return promise.finally(() => socket.destroy())
}

const isTemporary = (path: string): boolean => basename(path) === FILE && basename(dirname(path)).startsWith(TEMPORARY)

/** Removes the directory of a temporary socket, unless somebody else has put something there. */
async function removeTemporary(path: string): Promise<void> {
  if (isTemporary(path)) await rmdir(dirname(path)).catch(() => {})
}

/** Differs between containers with the same path and a shared temporary directory. */
async function idOf(dataDir: string): Promise<string> {
  const path = await realpath(dataDir)
  const { dev, ino } = await stat(path)
  return createHash('sha256').update(`${path} ${dev} ${ino}`).digest('hex').slice(0, 16)
}
