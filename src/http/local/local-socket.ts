/**
 * A Unix socket for programs of the same user on this machine, in a directory that only this user can enter. The holder of
 * the data directory makes it, so that one that exists is left over.
 */
import type { Stats } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../../lib/error-code.ts'

/** The shortest limit of the systems is 104 bytes with the zero at the end. */
const MAX_PATH_BYTES = 103

const FILE = 'server.sock'
const TEMPORARY = 'agent-server-local-'

/** Returns a path at which a socket can be made, in the data directory or in a temporary one. */
export async function placeOfSocket(dataDir: string): Promise<string> {
  const path = join(dataDir, 'local', FILE)
  const isShort = Buffer.byteLength(path) <= MAX_PATH_BYTES
  if (!isShort || !(await isOwnDirectory(dirname(path)))) return join(await mkdtemp(join(tmpdir(), TEMPORARY)), FILE)
  await chmod(dirname(path), 0o700)
  await rm(path, { force: true })
  return path
}

/** Creates it if it is missing. False for a link, or a directory of another user, who could put another socket there. */
async function isOwnDirectory(path: string): Promise<boolean> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
  return isOwn(await lstat(path))
}

const isOwn = (found: Stats | undefined): boolean =>
  found !== undefined && found.isDirectory() && found.uid === process.geteuid?.()

/** Removes the temporary directory of a socket, if it is in one; a socket in the data directory is removed when it closes. */
export async function removeSocket(path: string): Promise<void> {
  const directory = dirname(path)
  const isOurs = basename(path) === FILE && dirname(directory) === tmpdir() && basename(directory).startsWith(TEMPORARY)
  if (!isOurs) return
  const found = await lstat(directory).catch(() => undefined)
  if (isOwn(found)) await rm(directory, { recursive: true, force: true })
}
