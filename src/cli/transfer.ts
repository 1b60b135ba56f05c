/** `agent-server import` and `export`: conversations of a data directory into a database, and back into files. */
import { resolve } from 'node:path'
import { ConfigError, createReader } from '../config/environment.ts'
import { readDatabaseUrl } from '../config/keys.ts'
import type { TransferInvocation } from './command-line/read-arguments.ts'
import { say } from './terminal/terminal.ts'

/** Throws a `ConfigError` without a database, and an error that says why data was not copied. */
export async function transfer({ name, directory: givenDirectory }: TransferInvocation): Promise<void> {
  const read = createReader({})
  // A pooler gives no lock.
  const sessionUrl = readDatabaseUrl('OPENHANDS_DATABASE_SESSION_URL', read)
  const url = sessionUrl ?? readDatabaseUrl('OPENHANDS_DATABASE_URL', read)
  if (url === undefined) throw new ConfigError('Set OPENHANDS_DATABASE_URL to the database.')
  const directory = resolve(givenDirectory)
  if (name === 'import') {
    const { importDirectory } = await import('../storage/transfer/import-directory.ts')
    const { conversations, events } = await importDirectory({ directory, url })
    say(
      `The database has ${conversations} conversations with ${events} events, the same as the files. Start the server with OPENHANDS_DATABASE_URL and OPENHANDS_DATA_DIR=${directory}. To go back, run agent-server export --to ${directory}.\n`,
    )
    return
  }
  const { exportDirectory } = await import('../storage/transfer/export-directory.ts')
  const { conversations, events } = await exportDirectory({ directory, url })
  say(
    `${directory} has ${conversations} conversations with ${events} events, the same as the database. Start the server without OPENHANDS_DATABASE_URL and with OPENHANDS_DATA_DIR=${directory}.\n`,
  )
}
