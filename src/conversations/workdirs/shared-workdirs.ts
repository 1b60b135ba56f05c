/** Leaves a directory that was made for one conversation, and removes it with the last that works there. */
import { basename, dirname } from 'node:path'
import { removeTree } from '../../files/trees/remove-tree.ts'
import { FileRefusal } from '../../files/file-refusal.ts'
import { codeOf } from '../../lib/error-code.ts'
import { openUnmoved, within } from '../../files/opened-path.ts'
import type { SharedWorkdirs } from '../../storage/storage.ts'

/** Removes the directory, unless others still work there. For one that was given to `id` alone, too. */
export async function leaveWorkdir(shared: SharedWorkdirs, workdir: string, id: string): Promise<void> {
  if (await shared.leave(workdir, id)) await removeWorkdir(workdir)
}

/** The same where this conversation was noted; else nothing happens. */
export async function leaveIfShared(shared: SharedWorkdirs, workdir: string, id: string): Promise<void> {
  if (await shared.has(workdir, id)) await leaveWorkdir(shared, workdir, id)
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
