/**
 * Notes in the data directory which incarnation uses it, so that the next start can end that one at once: it has the lock of the
 * directory then, and the former process is dead. That is so only where the lock is one of this kernel: on a local file
 * system, since the same boot of the machine, and on the same file. Otherwise nothing is proven, and the TTL decides.
 */
import { readFile, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { replaceFile } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { DataLock } from '../files/directory/data-lock.ts'

export type NotedIncarnation = {
  readonly id: number
  /** The time in the text of the database. A restored database may give the id to another incarnation. */
  readonly startedAt: string
}

const Note = z.object({ id: z.number(), startedAt: z.string(), lock: z.string() })

/** The types in `statfs(2)`: ext4, XFS, Btrfs, tmpfs, ZFS, F2FS, overlayfs. Their locks are those of this kernel alone. */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58_46_53_42, 0x91_23_68_3e, 0x01_02_19_94, 0x2f_c1_2f_c1, 0xf2_f5_20_10, 0x79_4c_76_30,
])

const pathIn = (directory: string): string => join(directory, 'incarnation')

/** Returns the incarnation whose process certainly had the lock that this one has, and notes the new one. */
export async function replaceNote(
  directory: string,
  lock: Pick<DataLock, 'identity'>,
  own: NotedIncarnation,
): Promise<NotedIncarnation | undefined> {
  const provenLock = await nameOfLock(directory, lock)
  const former = await readNote(directory)
  await replaceFile(pathIn(directory), JSON.stringify({ ...own, lock: provenLock ?? '' }), {
    draft: `${pathIn(directory)}.new`,
  })
  return provenLock !== undefined && former?.lock === provenLock ? former : undefined
}

/** Returns undefined if two processes might have this lock. */
async function nameOfLock(directory: string, { identity }: Pick<DataLock, 'identity'>): Promise<string | undefined> {
  const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined) // not on macOS
  const { type } = await statfs(directory)
  if (bootId === undefined || identity === undefined || !LOCAL_FILE_SYSTEMS.has(type)) return undefined
  return `${bootId.trim()} ${identity}`
}

async function readNote(directory: string): Promise<z.infer<typeof Note> | undefined> {
  try {
    return Note.parse(JSON.parse(await readFile(pathIn(directory), 'utf8')))
  } catch (error) {
    // A damaged note proves nothing.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}
