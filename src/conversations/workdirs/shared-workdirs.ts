/** Which conversations work in a directory that was made for one of them. It is removed with the last of them. Kept on disk, as deletions are. */
import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncDirectory } from '../../lib/durable-file.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import { FileRefusal } from '../../files/file-refusal.ts'
import { codeOf } from '../../lib/error-code.ts'
import { openUnmoved, within } from '../../files/opened-path.ts'

export interface SharedWorkdirs {
  /** Notes durably that these conversations work there. */
  share(workdir: string, ids: readonly string[]): Promise<void>
  isShared(workdir: string): Promise<boolean>
  /** Removes the directory, unless others still work there. For one that was given to `id` alone, too. */
  leave(workdir: string, id: string): Promise<void>
  /** The same where this conversation was noted; else nothing happens. */
  leaveIfShared(workdir: string, id: string): Promise<void>
}

/** `isThere` tells whether there is anything of a conversation: a fork that a crash cut off never worked there. */
export function createSharedWorkdirs(directory: string, isThere: (id: string) => Promise<boolean>): SharedWorkdirs {
  const placeOf = (workdir: string) => join(directory, createHash('sha256').update(workdir).digest('hex'))

  const leave: SharedWorkdirs['leave'] = async (workdir, id) => {
    const place = placeOf(workdir)
    const names = await readdir(place).catch(() => [])
    for (const name of names) if (name === id || !(await isThere(name))) await rm(join(place, name), { force: true })
    if (await isNowEmpty(place)) await removeWorkdir(workdir)
  }

  return {
    isShared: (workdir) => isFound(placeOf(workdir)),
    async share(workdir, ids) {
      const place = placeOf(workdir)
      await mkdir(place, { recursive: true, mode: 0o700 })
      await Promise.all(ids.map((id) => writeFile(join(place, id), '', { mode: 0o600 })))
      await syncDirectory(place)
      await syncDirectory(directory)
    },
    leave,
    async leaveIfShared(workdir, id) {
      if (await isFound(join(placeOf(workdir), id))) await leave(workdir, id)
    },
  }
}

const isFound = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Whether it could be removed, or was not there. */
async function isNowEmpty(place: string): Promise<boolean> {
  try {
    await rmdir(place)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOTEMPTY') return false
    if (codeOf(error) === 'ENOENT') return true
    throw error
  }
}

/**
 * Not by its path: one that lies in another conversation's workdir can have a link above it by now, and what that leads
 * to is nobody's to remove. Then it is not there any more.
 */
async function removeWorkdir(path: string): Promise<void> {
  try {
    await using parent = await openUnmoved(dirname(path))
    await removeTree(within(parent, basename(path)))
  } catch (error) {
    if (!(error instanceof FileRefusal) && codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
  }
}
