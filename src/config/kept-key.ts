/** The master key that is generated at first use and kept in the data directory, readable by its owner only. */
import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../lib/error-code.ts'
import { makeDirectories } from '../files/make-directories.ts'
import { ConfigError } from './environment.ts'
import { faultOfMasterKey } from './keys.ts'

export type GeneratedKey = { readonly key: string; readonly path: string; readonly isNew: boolean }

export const pathOfKey = (dataDir: string): string => join(dataDir, 'master-key')

/** Returns the kept key; creates it on first use. Several processes that do so at the same time get the same key. */
export async function keepKey(dataDir: string): Promise<GeneratedKey> {
  const path = pathOfKey(dataDir)
  const keptKey = await readKeptKey(path)
  if (keptKey !== undefined) return { key: keptKey, path, isNew: false }
  const key = randomBytes(32).toString('hex')
  try {
    await makeDirectories(dataDir, 0o700)
    if (await createFile(path, `${key}\n`)) return { key, path, isNew: true }
  } catch (error) {
    throw cannotKeep(path, error)
  }
  return await keepKey(dataDir)
}

/** Returns false if the file exists. It appears with its whole content. */
async function createFile(path: string, content: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' })
    await link(draft, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    // A file system without links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(codeOf(error) ?? '')) throw error
    await writeFile(path, content, { mode: 0o600, flag: 'wx' })
    return true
  } finally {
    await rm(draft, { force: true })
  }
}

/** Undefined when no key was made yet. */
export async function readKeptKey(path: string): Promise<string | undefined> {
  const key = await readFile(path, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw cannotKeep(path, error)
  })
  if (key === undefined) return undefined
  const fault = faultOfMasterKey(key.trim())
  if (fault !== undefined)
    throw new ConfigError(`The key in ${path} ${fault}. Remove the file, and the next start makes a new key.`)
  return key.trim()
}

function cannotKeep(path: string, error: unknown): ConfigError {
  return new ConfigError(
    `The master key cannot be kept in ${path} (${codeOf(error) ?? 'error'}); set OPENHANDS_DATA_DIR, or OPENHANDS_MASTER_KEY.`,
    { cause: error },
  )
}
