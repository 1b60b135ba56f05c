/** `agent-server key`, and where the master key in use comes from. Never prints a key unasked. */
import { readConfig } from '../config/config.ts'
import { masterKeySource, ConfigError } from '../config/environment.ts'
import { readDataDir } from '../config/paths.ts'
import type { GeneratedKey } from '../config/kept-key.ts'
import { pathOfKey, readKeptKey } from '../config/kept-key.ts'
import { say } from './terminal/terminal.ts'

/** `agent-server key`. Throws a `ConfigError` when there is no key yet. */
export async function printKey(): Promise<void> {
  say(`${await keyOfThisMachine()}\n`)
}

/** The master key of a server with the settings of this process. Throws a `ConfigError` when there is no key yet. */
export async function keyOfThisMachine(): Promise<string> {
  const path = pathOfKey(readDataDir())
  const key = masterKeySource() === undefined ? await readKeptKey(path) : readConfig().masterKeys[0]
  if (key === undefined)
    throw new ConfigError(`There is no key in ${path} yet; agent-server serve --generate-key makes one.`)
  return key
}

/** Says where a person finds the key, and how a shell writes it; `bearer` is undefined when no shell has it at hand. */
export type KeyPlace = { readonly text: string; readonly bearer: string | undefined }

export function placeOfKey(keptKey: GeneratedKey | undefined): KeyPlace {
  if (keptKey) return { text: `${keptKey.path}${keptKey.isNew ? ' (made now)' : ''}`, bearer: contentOf(keptKey.path) }
  const source = masterKeySource()
  if (source?.from === 'file') return { text: source.path, bearer: contentOf(source.path) }
  if (source?.from === 'dotenv') return { text: 'OPENHANDS_MASTER_KEY in .env', bearer: undefined }
  return { text: 'OPENHANDS_MASTER_KEY', bearer: '$OPENHANDS_MASTER_KEY' }
}

const contentOf = (path: string): string => `$(cat '${path.replaceAll("'", String.raw`'\''`)}')`
