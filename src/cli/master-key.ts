/** The master key that `--generate-key` makes and keeps, and where the one in use comes from. Never prints a key unasked. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { masterKeySource, readConfig, readDataDir } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { faultOfMasterKey } from '../config/keys.ts'
import { codeOf } from '../lib/error-code.ts'
import { makeDirectories } from '../lib/make-directories.ts'

export type GeneratedKey = { readonly key: string; readonly path: string; readonly isNew: boolean }

const pathIn = (dataDir: string): string => join(dataDir, 'master-key')

/** `agent-server key`. Throws a `ConfigError` when there is no key yet. */
export async function printKey(): Promise<void> {
  const path = pathIn(readDataDir())
  const key = masterKeySource() === undefined ? await readKept(path) : readConfig().masterKeys[0]
  if (key === undefined)
    throw new ConfigError(`There is no key in ${path} yet; agent-server serve --generate-key makes one.`)
  process.stdout.write(`${key}\n`)
}

/** The key kept in the data directory; made at first use, readable by its owner only. */
export async function keepKey(dataDir: string): Promise<GeneratedKey> {
  const path = pathIn(dataDir)
  const kept = await readKept(path)
  if (kept !== undefined) return { key: kept, path, isNew: false }
  const key = randomBytes(32).toString('hex')
  try {
    await makeDirectories(dataDir, 0o700)
    await writeFile(path, `${key}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw cannotKeep(path, error)
  }
  return { key, path, isNew: true }
}

/** Undefined when no key was made yet. */
async function readKept(path: string): Promise<string | undefined> {
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

/** Where a person finds the key, and how a shell writes it; `bearer` is undefined when no shell has it at hand. */
export type KeyPlace = { readonly text: string; readonly bearer: string | undefined }

export function placeOfKey(kept: GeneratedKey | undefined): KeyPlace {
  if (kept) return { text: `${kept.path}${kept.isNew ? ' (made now)' : ''}`, bearer: contentOf(kept.path) }
  const source = masterKeySource()
  if (source?.from === 'file') return { text: source.path, bearer: contentOf(source.path) }
  if (source?.from === 'dotenv') return { text: 'OPENHANDS_MASTER_KEY in .env', bearer: undefined }
  return { text: 'OPENHANDS_MASTER_KEY', bearer: '$OPENHANDS_MASTER_KEY' }
}

const contentOf = (path: string): string => `$(cat '${path.replaceAll("'", String.raw`'\''`)}')`
