/** Reads the address to listen on. It does not need the code that checks the other settings, so the server can listen first. */
import type { ReadVariable } from './environment.ts'
import { ConfigError } from './environment.ts'

const MAX_PORT = 65_535

export type Address = { readonly host: string; readonly port: number }

/** Throws a `ConfigError`. */
export function readAddress(read: ReadVariable): Address {
  const host = read('OPENHANDS_SERVER_HOST')
  if (host === undefined) throw new ConfigError('OPENHANDS_SERVER_HOST is not valid: give an address or a name.')
  const digits = read('OPENHANDS_SERVER_PORT')?.trim() ?? ''
  const port = Number(digits)
  if (!/^\d+$/.test(digits) || port > MAX_PORT)
    throw new ConfigError(`OPENHANDS_SERVER_PORT is not valid: give a whole number from 0 to ${MAX_PORT}.`)
  return { host, port }
}
