/**
 * Connections to places that somebody else named. Which address a name leads to is asked once per connection, judged, and
 * that very address is connected to: a name that leads elsewhere a moment later leads nowhere.
 */
import { lookup as askSystem } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import type { buildConnector } from 'undici'
import type { AddressRules } from './public-address.ts'

export type Connector = buildConnector.connector

/** Every address of a name. */
export type Lookup = (hostname: string) => Promise<{ address: string; family: number }[]>

/** As the system resolves it, `/etc/hosts` and all. libuv keeps half of its threads from lookups: a name server that is silent cannot hold up the files of the logs. */
export const lookupAll: Lookup = (hostname) => askSystem(hostname, { all: true })

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  /** As the system's errors have one: what it is wrapped into keeps it. */
  readonly code = 'ADDRESS_REFUSED'
}

/** Longer than handshakes take, milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000

/** What may be asked before there is a request, milliseconds; the request has its own limit. */
const FORESEE_TIMEOUT_MS = 3000

/** Those that may be connected to, at least one. Throws `AddressRefused` when there is none. */
async function permittedAddresses(rules: AddressRules, lookup: Lookup, hostname: string) {
  const addresses = await lookup(hostname)
  const refusals = addresses.map(({ address }) => rules.refusal(address, hostname))
  const open = addresses.filter((_, at) => refusals[at] === undefined)
  if (open.length === 0) throw new AddressRefused(refusals[0] ?? 'it has no address')
  return open
}

/** Why nothing would be connected to there now, as a clause; undefined also when the name leads nowhere yet. */
export async function foreseeRefusal(rules: AddressRules, lookup: Lookup, url: string): Promise<string | undefined> {
  const hostname = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (isIP(hostname)) return rules.refusal(hostname, hostname)
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), FORESEE_TIMEOUT_MS)
  try {
    await Promise.race([permittedAddresses(rules, lookup, hostname), late.promise])
    return undefined
  } catch (error) {
    // A name that leads nowhere may do so tomorrow.
    return error instanceof AddressRefused ? error.message : undefined
  } finally {
    clearTimeout(timer)
  }
}

/** To any address. */
export async function createConnector(): Promise<Connector> {
  const { buildConnector } = await import('undici')
  return buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false })
}

/**
 * HTTP/1.1 only, as `allowH2: false` of the dispatcher asks for too. Nothing is looked up for an address in the URL, so it
 * is judged here; and once more what the system says is at the other end.
 */
export async function createGuardedConnector(rules: AddressRules, lookup: Lookup): Promise<Connector> {
  const { buildConnector } = await import('undici')
  const permitted = (hostname: string) => permittedAddresses(rules, lookup, hostname)
  const connect = buildConnector({ lookup: asNodeLooksUp(permitted), timeout: CONNECT_TIMEOUT_MS, allowH2: false })
  return (options, callback) => {
    const { hostname } = options
    const bare = hostname.replace(/^\[|\]$/g, '')
    const refusal = isIP(bare) ? rules.refusal(bare, bare) : undefined
    if (refusal !== undefined) return queueMicrotask(() => callback(new AddressRefused(refusal), null))
    connect(options, (error, socket) => {
      if (error) return callback(error, null)
      const met = rules.refusal(socket.remoteAddress ?? '0.0.0.0', hostname)
      if (met === undefined) return callback(null, socket)
      socket.destroy()
      callback(new AddressRefused(met), null)
    })
  }
}

function asNodeLooksUp(permitted: Lookup): LookupFunction {
  const ask = callbackify(permitted)
  return (hostname, { all }, callback) => {
    ask(hostname, (error, addresses) => {
      if (error) callback(error, '')
      else if (all) callback(null, addresses)
      // oxlint-disable-next-line typescript/no-non-null-assertion -- a lookup without an address rejects
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}
