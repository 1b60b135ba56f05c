/** Paths held open by a descriptor, so that no name can be swapped between a check and its use. Linux only. */
import { constants } from 'node:fs'
import { mkdir, open, readlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { FileRefusal } from './file-refusal.ts'
import { codeOf, ignoring } from '../../lib/error-code.ts'

/** Opens a path without opening its content; Linux's number, for which Node has no constant. */
export const O_PATH = 0o10000000

/** An open file or directory, and its real path according to the kernel. */
export type OpenedPath = AsyncDisposable & { readonly handle: FileHandle; readonly path: string }

export async function openAt(path: string | Buffer, flags = 0): Promise<OpenedPath> {
  const handle = await open(path, O_PATH | flags)
  try {
    const real = await readlink(`/proc/self/fd/${handle.fd}`)
    return { handle, path: real, [Symbol.asyncDispose]: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

export const openDirectory = (path: string) => openAt(path, constants.O_DIRECTORY)

/** Returns the path of a name in an open directory, even if the directory's own name has changed its meaning. */
export const within = ({ handle }: Pick<OpenedPath, 'handle'>, name: string) => `/proc/self/fd/${handle.fd}/${name}`

/** Returns the real path of something that does not exist: its nearest existing directory, and the rest as given. */
export async function findMissing(path: string): Promise<string> {
  const target = await readlink(path).catch(() => undefined)
  if (target !== undefined) {
    throw new FileRefusal(
      `${path} is a symbolic link to ${target}, which does not exist; use the path of the file itself.`,
    )
  }
  const parent = dirname(path)
  try {
    await using directory = await openDirectory(parent)
    return join(directory.path, basename(path))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    return join(await findMissing(parent), basename(path))
  }
}

/** Opens the directory at a path that had no links when it was found, and creates missing directories. */
export async function makeDirectory(path: string): Promise<OpenedPath> {
  try {
    return await openUnmoved(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
  await using parent = await makeDirectory(dirname(path))
  const child = within(parent, basename(path))
  await mkdir(child).catch(ignoring('EEXIST'))
  return await openAt(child, constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

/** Refuses if the directory was moved since something in it was found: its path now leads elsewhere. */
export async function openUnmoved(path: string): Promise<OpenedPath> {
  const place = await openDirectory(path)
  if (place.path === path) return place
  await place.handle.close()
  throw new FileRefusal(`${path} was moved meanwhile; view it and try again.`)
}
