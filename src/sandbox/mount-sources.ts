/**
 * Opens the files and directories that a sandbox mounts, as descriptors and without following links, so that nothing
 * which a shell puts in their place meanwhile is mounted, created or changed instead.
 */
import { constants } from 'node:fs'
import { chmod, mkdir, readlink, rename, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import { removeTree } from '../files/trees/remove-tree.ts'
import { FileRefusal } from '../files/jail/file-refusal.ts'
import { codeOf, ignoreMissing, isOutOfDescriptors } from '../lib/error-code.ts'
import { makeDirectory, openAt, openUnmoved, within, type OpenedPath } from '../files/jail/opened-path.ts'

/** Opens the workdir, and creates it if it is missing. Throws if its path contains a link. */
export async function openWorkdir(path: string): Promise<OpenedPath> {
  try {
    return await checkPlace(await makeDirectory(path), path)
  } catch (error) {
    if (!(error instanceof FileRefusal) && codeOf(error) !== 'ELOOP' && codeOf(error) !== 'ENOTDIR') throw error
    throw new Error(`The workdir ${path} has become a link to another directory; no shell is started there.`, {
      cause: error,
    })
  }
}

/** Opens an existing directory of the server. */
export const openOwnDirectory = (path: string): Promise<OpenedPath> => openUnmoved(path)

/** Opens a file or directory whose path had no link when it was found; returns undefined if it was moved or deleted. */
export async function openVisible(path: string): Promise<OpenedPath | undefined> {
  const place = await openAt(path).catch((error: unknown) => {
    // The shell would be without it as long as it runs.
    if (isOutOfDescriptors(error)) throw error
    return undefined
  })
  if (!place || place.path === path) return place
  await place.handle.close()
  return undefined
}

/** Opens a directory in the same way. Returns undefined if the path is not a directory any more. */
export async function openAdditional(path: string): Promise<OpenedPath | undefined> {
  const place = await openVisible(path)
  if (!place || (await place.handle.stat()).isDirectory()) return place
  await place.handle.close()
  return undefined
}

/** Opens a socket in the same way. Returns undefined if the path is not a socket any more. */
export async function openSocket(path: string): Promise<OpenedPath | undefined> {
  const place = await openVisible(path)
  if (!place || (await place.handle.stat()).isSocket()) return place
  await place.handle.close()
  return undefined
}

/**
 * Opens the home of a conversation. Programs that look for their toolchain in the home find it through links that are
 * created before the home gets its name, and so before any shell could interfere.
 */
export async function openHome(path: string, usersHome: string, toolchains: readonly string[]): Promise<OpenedPath> {
  return await openOrMake(path, 0o700, async (home) => {
    for (const name of toolchains) {
      await makeDirectories(within(home, dirname(name)))
      await symlink(join(usersHome, name), within(home, name))
    }
  })
}

/** Opens the conversation's /tmp: with fixed permissions, independent of the umask. */
export const openScratch = (path: string): Promise<OpenedPath> => openOrMake(path, 0o1777, () => Promise.resolve())

/** Must not run concurrently: one caller's directory would replace another's that is still empty. */
async function openOrMake(path: string, mode: number, fill: (place: OpenedPath) => Promise<void>): Promise<OpenedPath> {
  const existing = await openUnmoved(path).catch(ignoreMissing)
  if (existing) return existing
  await using parent = await makeDirectory(dirname(path))
  const name = `${basename(path)}.new`
  // A server that was killed may have left it.
  await removeTree(within(parent, name))
  await mkdir(within(parent, name), { mode: 0o700 })
  {
    await using createdDirectory = await openAt(within(parent, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    await fill(createdDirectory)
    await chmod(within(createdDirectory, '.'), mode)
  }
  try {
    await rename(within(parent, name), within(parent, basename(path)))
  } catch (error) {
    await removeTree(within(parent, name))
    throw error
  }
  return await openUnmoved(path)
}

/** Directories above it may have been moved while it was created. */
async function checkPlace(place: OpenedPath, path: string): Promise<OpenedPath> {
  const real = await readlink(`/proc/self/fd/${place.handle.fd}`)
  if (real === path) return place
  await place.handle.close()
  throw new FileRefusal(`${path} was moved meanwhile.`)
}
