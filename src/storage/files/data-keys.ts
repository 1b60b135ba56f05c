/**
 * The keys that encrypt stored data: random keys of the server in one file, themselves encrypted with the operator's
 * keys. So the operator's key can change without rewriting any other file.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { KeyMaterial } from '../../security/sealer.ts'
import { createSealers } from '../../security/sealer.ts'
import type { DataKeys } from '../storage.ts'

const FILE = 'data-keys'
const OWNER = 'data keys'
const KEY_BYTES = 32

/**
 * Creates a key if none can be decrypted, and re-encrypts the readable ones with the first of the operator's keys.
 * Unreadable keys are kept: the operator's key for them may be found again.
 */
export async function openDataKeys(dataDir: string, operatorKeys: KeyMaterial): Promise<DataKeys> {
  const path = join(dataDir, FILE)
  const kept = await readLines(path)
  const [any, first] = [createSealers(operatorKeys)(OWNER), createSealers([operatorKeys[0]])(OWNER)]
  const entries = kept.map((line) => ({ line, key: any.unseal(Buffer.from(line, 'base64'))?.toString() }))
  if (entries.every(({ key }) => key === undefined)) {
    entries.push({ line: '', key: randomBytes(KEY_BYTES).toString('base64') })
  }
  const lines = entries.map(({ line, key }) =>
    key === undefined || first.unseal(Buffer.from(line, 'base64'))
      ? line
      : first.seal(Buffer.from(key)).toString('base64'),
  )
  if (lines.join() !== kept.join()) await replaceFile(path, Buffer.from(`${lines.join('\n')}\n`))
  // Newest first: it encrypts.
  const keys = entries.flatMap(({ key }) => key ?? []).toReversed()
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there is one: it was made if no key could be read
  return { material: [keys[0]!, ...keys.slice(1), ...operatorKeys], locked: entries.length - keys.length }
}

async function readLines(path: string): Promise<string[]> {
  try {
    return (await readFile(path, 'utf8')).split('\n').filter(Boolean)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
