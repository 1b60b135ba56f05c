/**
 * The record next to the lock of a data directory: where the server that holds it can be reached by programs of the same
 * user, and with which credential. Only its owner can read it. It counts only while the directory is locked.
 */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { replaceFile } from '../lib/durable-file.ts'
import { codeOf } from '../lib/error-code.ts'

const LocalRecord = z.object({
  address: z.string().describe('`unix:` and a path, or an http URL.'),
  credential: z.string(),
})
export type LocalRecord = z.infer<typeof LocalRecord>

const pathIn = (dataDir: string): string => join(dataDir, 'local.json')

/** Atomic. Not durable: after a power failure nobody holds the lock. */
export async function writeLocalRecord(dataDir: string, record: LocalRecord): Promise<void> {
  const path = pathIn(dataDir)
  await replaceFile(path, `${JSON.stringify(record)}\n`, { durable: false, draft: `${path}.new` })
}

/** Returns undefined if the record is missing or cannot be used. */
export async function readLocalRecord(dataDir: string): Promise<LocalRecord | undefined> {
  try {
    return LocalRecord.parse(JSON.parse(await readFile(pathIn(dataDir), 'utf8')))
  } catch (error) {
    // A half-written or foreign file is as good as none: the holder of the lock writes it again.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}

export async function removeLocalRecord(dataDir: string): Promise<void> {
  await rm(pathIn(dataDir), { force: true })
}
