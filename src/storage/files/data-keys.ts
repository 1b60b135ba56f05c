/** The keys that encrypt stored data, in one file of the data directory. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { KeyMaterial } from '../../security/sealer.ts'
import { openKeys } from '../shared/key-list.ts'
import type { DataKeys } from '../storage.ts'

const FILE = 'data-keys'

/** Creates a key if none can be decrypted: see `openKeys`. */
export async function openDataKeys(dataDir: string, operatorKeys: KeyMaterial): Promise<DataKeys> {
  const { sealed, keys, isChanged } = openKeys(await readSealedKeys(dataDir), operatorKeys)
  if (isChanged) await writeSealedKeys(dataDir, sealed)
  return keys
}

/** Durable. */
export async function writeSealedKeys(dataDir: string, sealedKeys: readonly string[]): Promise<void> {
  await replaceFile(join(dataDir, FILE), Buffer.from(`${sealedKeys.join('\n')}\n`))
}

/** Returns the keys as they are stored, Base64, oldest first. */
export async function readSealedKeys(dataDir: string): Promise<string[]> {
  try {
    return (await readFile(join(dataDir, FILE), 'utf8')).split('\n').filter(Boolean)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
