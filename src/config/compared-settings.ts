/** The settings that all instances of a database should have in common: a conversation runs at any of them. */
import type { Name } from './variables.ts'
import { VARIABLES } from './variables.ts'
import type { ReadVariable } from './environment.ts'

/** Settings of one machine or process. */
const OF_ONE_INSTANCE: ReadonlySet<string> = new Set<Name>([
  'OPENHANDS_SERVER_HOST',
  'OPENHANDS_SERVER_PORT',
  'OPENHANDS_LOG_LEVEL',
  'OPENHANDS_LOG_FORMAT',
  'OPENHANDS_DATA_DIR',
  'OPENHANDS_DATABASE_URL',
  'OPENHANDS_DATABASE_SESSION_URL',
  'OPENHANDS_CLUSTER_LISTEN',
  'OPENHANDS_ADVERTISE_URL',
  'OPENHANDS_CLUSTER_TLS_CERT',
  'OPENHANDS_CLUSTER_TLS_KEY',
  'OPENHANDS_CLUSTER_TLS_CA',
  'OPENHANDS_MAX_CONCURRENT_RUNS',
])

/** Returns the values by name, with the defaults; some are secrets. */
export function comparedSettings(read: ReadVariable): Readonly<Record<string, string>> {
  const names = Object.keys(VARIABLES).filter((name) => !OF_ONE_INSTANCE.has(name))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table of variables
  const entries = names.map((name) => [name, read(name as Name)] as const)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined))
}
