/**
 * The record next to the lock of a data directory: where the server that holds it can be reached by programs of the same
 * user, and with which credential. Only its owner can read it. The only file that decides whether a record is trusted: what
 * reads it sends prompts and model keys to that address.
 */
import { constants } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { replaceFile } from '../lib/durable-file.ts'

const LocalRecord = z.object({
  address: z.string().describe('`unix:` and a path, or an http URL.'),
  credential: z.string(),
  url: z.string().optional().describe('Where the server listens for others. Absent: it ends with its program.'),
})
export type LocalRecord = z.infer<typeof LocalRecord>

/** Why a record that exists is not used, as a clause. */
export type RefusedRecord = { readonly refusal: string }

const MAX_RECORD_BYTES = 8192

const pathIn = (dataDir: string): string => join(dataDir, 'local.json')

/** Atomic. Not durable: after a power failure nobody holds the lock. */
export async function writeLocalRecord(dataDir: string, record: LocalRecord): Promise<void> {
  const path = pathIn(dataDir)
  await replaceFile(path, `${JSON.stringify(record)}\n`, { durable: false, draft: `${path}.new` })
}

/** Returns undefined if the directory has no record. */
export async function readLocalRecord(dataDir: string): Promise<LocalRecord | RefusedRecord | undefined> {
  const path = pathIn(dataDir)
  try {
    // A pipe that somebody put there would otherwise be waited for.
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > MAX_RECORD_BYTES) return { refusal: `${path} is not a record` }
    if (!isTrusted(stats, await trustedOwners(dataDir)))
      return { refusal: `${path} belongs to another user, or others may write it` }
    return LocalRecord.parse(JSON.parse(await file.readFile('utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error)
      return error.code === 'ENOENT' ? undefined : { refusal: `${path} cannot be read (${String(error.code)})` }
    // The holder of the lock writes it again.
    return { refusal: `${path} is damaged` }
  }
}

/** This user, and whose data directory it is: who chose the directory has trusted its owner. */
export async function trustedOwners(dataDir: string): Promise<readonly (number | undefined)[]> {
  return [process.geteuid?.(), (await stat(dataDir)).uid]
}

/** Returns true if only trusted users can have made and changed it. Windows has neither owners nor modes. */
export function isTrusted(
  { uid, mode }: { readonly uid: number; readonly mode: number },
  owners: readonly (number | undefined)[],
): boolean {
  return process.geteuid === undefined || (owners.includes(uid) && (mode & OTHERS_MAY_WRITE) === 0)
}

const OTHERS_MAY_WRITE = 0o022

export async function removeLocalRecord(dataDir: string): Promise<void> {
  await rm(pathIn(dataDir), { force: true })
}
