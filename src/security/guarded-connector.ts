/**
 * Connects to places that a client named. A name is resolved once per connection, its address is checked, and exactly
 * that address is connected to: a name that resolves differently a moment later has no effect.
 */
import { isIP } from 'node:net'
import type { buildConnector } from 'undici'
import type { Lookup } from './lookup.ts'
import { asNodeLooksUp, lookupAll } from './lookup.ts'
import type { AddressRules } from './public-address.ts'

export type Connector = buildConnector.connector

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  /** System errors have a code, too, and wrapping keeps it. */
  readonly code = 'ADDRESS_REFUSED'
}

/** Longer than handshakes take, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000

/** Time limit of the check before a request, in milliseconds; the request has its own limit. */
const FORESEE_TIMEOUT_MS = 3000

/** Returns the permitted addresses, at least one. Throws `AddressRefused` if there is none. */
async function permittedAddresses(rules: AddressRules, lookup: Lookup, hostname: string) {
  const addresses = await lookup(hostname)
  const refusals = addresses.map(({ address }) => rules.refusal(address, hostname))
  const open = addresses.filter((_, at) => refusals[at] === undefined)
  if (open.length === 0) throw new AddressRefused(refusals[0] ?? 'it has no address')
  return open
}

/** Returns why no connection would be made now, as a clause; undefined also if the name does not resolve yet. */
export async function foreseeRefusal(rules: AddressRules, lookup: Lookup, url: string): Promise<string | undefined> {
  const hostname = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (isIP(hostname)) return rules.refusal(hostname, hostname)
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), FORESEE_TIMEOUT_MS)
  try {
    await Promise.race([permittedAddresses(rules, lookup, hostname), late.promise])
    return undefined
  } catch (error) {
    // A name that does not resolve now may do so tomorrow.
    return error instanceof AddressRefused ? error.message : undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to any address. */
export async function createConnector(): Promise<Connector> {
  const { buildConnector } = await import('undici')
  return buildConnector({ lookup: asNodeLooksUp(lookupAll), timeout: CONNECT_TIMEOUT_MS, allowH2: false })
}

/**
 * HTTP/1.1 only, as with the dispatcher's `allowH2: false`. An address in the URL is not looked up, so it is checked
 * here; and the system's remote address is checked once more.
 */
export async function createGuardedConnector(rules: AddressRules, lookup: Lookup): Promise<Connector> {
  const { buildConnector } = await import('undici')
  const permittedOf = (hostname: string) => permittedAddresses(rules, lookup, hostname)
  const connect = buildConnector({ lookup: asNodeLooksUp(permittedOf), timeout: CONNECT_TIMEOUT_MS, allowH2: false })
  return (options, callback) => {
    const { hostname } = options
    const bare = hostname.replace(/^\[|\]$/g, '')
    const refusal = isIP(bare) ? rules.refusal(bare, bare) : undefined
    if (refusal !== undefined) return queueMicrotask(() => callback(new AddressRefused(refusal), null))
    connect(options, (error, socket) => {
      if (error) return callback(error, null)
      const refusal = rules.refusal(socket.remoteAddress ?? '0.0.0.0', hostname)
      if (refusal === undefined) return callback(null, socket)
      socket.destroy()
      callback(new AddressRefused(refusal), null)
    })
  }
}
