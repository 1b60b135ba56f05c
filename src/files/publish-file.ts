/**
 * How a file that was written under a name of its own takes its place: whole, or not at all. Not `replaceFile`, which
 * goes by paths: a command could put a link in the way.
 */
import type { PathLike } from 'node:fs'
import { link, lstat, rename } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { codeOf } from '../lib/error-code.ts'

/** By a link and not a rename, which would replace what has come to be there meanwhile. */
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

/** What file systems without hard links answer, FAT and shared folders of virtual machines among them. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

export type Ownership = { readonly mode: bigint; readonly uid: bigint; readonly gid: bigint }

/** Gives a new file the rights, and where it may the owner, of the one whose place it takes. */
export async function makeAlike(file: FileHandle, { mode, uid, gid }: Ownership): Promise<void> {
  const own = await file.stat({ bigint: true })
  // Only root may give files away; for others the new file stays theirs.
  if (own.uid !== uid || own.gid !== gid) await file.chown(Number(uid), Number(gid)).catch(() => {})
  // Last: a change of owner takes the set-user-id bit away.
  await file.chmod(Number(mode & 0o7777n))
}
