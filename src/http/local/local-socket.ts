/**
 * A Unix socket for programs of the same user on this machine, in a directory that only this user can enter. The holder of
 * the data directory makes it, so that one that exists is left over.
 */
import { chmod, lstat, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** The shortest limit of the systems is 104 bytes with the zero at the end. */
const MAX_PATH_BYTES = 103

const FILE = 'server.sock'
const TEMPORARY = 'agent-server-local-'

/** Returns a path at which a socket can be made. It is in another directory if that in the data directory is too long. */
export async function placeOfSocket(dataDir: string): Promise<string> {
  const path = join(dataDir, 'local', FILE)
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return join(await mkdtemp(join(tmpdir(), TEMPORARY)), FILE)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await chmod(dirname(path), 0o700)
  await rm(path, { force: true })
  return path
}

/** Removes the temporary directory of a socket, if it is in one; a socket in the data directory is removed when it closes. */
export async function removeSocket(path: string): Promise<void> {
  const directory = dirname(path)
  const isOurs = basename(path) === FILE && dirname(directory) === tmpdir() && basename(directory).startsWith(TEMPORARY)
  if (!isOurs) return
  const found = await lstat(directory).catch(() => undefined)
  if (found?.isDirectory() && found.uid === process.getuid?.()) await rm(directory, { recursive: true, force: true })
}
