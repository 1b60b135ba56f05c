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
  const path = join(dataDir, FILE)
  const { sealed, keys, isChanged } = openKeys(await readLines(path), operatorKeys)
  if (isChanged) await replaceFile(path, Buffer.from(`${sealed.join('\n')}\n`))
  return keys
}

async function readLines(path: string): Promise<string[]> {
  try {
    return (await readFile(path, 'utf8')).split('\n').filter(Boolean)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
