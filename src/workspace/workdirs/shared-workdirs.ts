/**
 * Leaves a directory that was created for one conversation, and removes it with the last conversation that works there.
 */
import { basename, dirname } from 'node:path'
import { removeTree } from '../../files/trees/remove-tree.ts'
import { FileRefusal } from '../../files/jail/file-refusal.ts'
import { codeOf } from '../../lib/error-code.ts'
import { openUnmoved, within } from '../../files/jail/opened-path.ts'
import type { SharedWorkdirs } from '../../storage/storage.ts'

/** Removes the directory, unless others still work there. Also for a directory that only `id` uses. */
export async function leaveWorkdir(sharedWorkdirs: SharedWorkdirs, workdir: string, id: string): Promise<void> {
  if (await sharedWorkdirs.leave(workdir, id)) await removeWorkdir(workdir)
}

/** Does the same if this conversation was recorded as a user; otherwise nothing. */
export async function leaveIfShared(sharedWorkdirs: SharedWorkdirs, workdir: string, id: string): Promise<void> {
  if (await sharedWorkdirs.has(workdir, id)) await leaveWorkdir(sharedWorkdirs, workdir, id)
}

/**
 * Do not resolve the path: a directory inside another conversation's workdir can have a symbolic link above it by now,
 * and the link's target must not be removed. The directory no longer exists then.
 */
async function removeWorkdir(path: string): Promise<void> {
  try {
    await using parent = await openUnmoved(dirname(path))
    await removeTree(within(parent, basename(path)))
  } catch (error) {
    if (!(error instanceof FileRefusal) && codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
  }
}
