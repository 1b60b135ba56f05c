/**
 * Moves a temporary file to its final name atomically. Not `replaceFile`, which works by paths: a command could put a
 * link there.
 */
import type { PathLike } from 'node:fs'
import { link, lstat, rename } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { codeOf } from '../lib/error-code.ts'

/** Uses a link instead of a rename, which would replace a file that was created meanwhile. */
export async function publishNew(temporary: PathLike, target: PathLike): Promise<void> {
  try {
    await link(temporary, target)
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error
    const isFree = await lstat(target).then(
      () => false,
      (missing: unknown) => codeOf(missing) === 'ENOENT',
    )
    if (!isFree) throw error
    await rename(temporary, target)
  }
}

/** The errors of file systems without hard links, such as FAT and shared folders of virtual machines. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

export type Ownership = { readonly mode: bigint; readonly uid: bigint; readonly gid: bigint }

/** Gives a new file the permissions, and if possible the owner, of the file it replaces. */
export async function makeAlike(file: FileHandle, { mode, uid, gid }: Ownership): Promise<void> {
  const own = await file.stat({ bigint: true })
  // Root alone may change owners; for other users the new file is their own.
  if (own.uid !== uid || own.gid !== gid) await file.chown(Number(uid), Number(gid)).catch(() => {})
  // Set it last: a change of owner clears the set-user-id bit.
  await file.chmod(Number(mode & 0o7777n))
}
