/**
 * Decides which origins model requests may go to, by the operator's list. The only file that judges a model's endpoint.
 */
import type { Lookup } from './lookup.ts'
import { lookupAll } from './lookup.ts'
import type { Connector } from './guarded-connector.ts'
import { createConnector, createGuardedConnector, foreseeRefusal } from './guarded-connector.ts'
import { createAddressRules } from './public-address.ts'

export interface EndpointRules {
  /**
   * Returns why no request would go there now, as a clause; undefined if it may, or if the name does not resolve yet.
   */
  refusal(url: string): Promise<string | undefined>
  /** Returns a connector that refuses forbidden connections: with `EndpointRefused`, or `AddressRefused`. */
  connector(): Promise<Connector>
}

class EndpointRefused extends Error {
  override readonly name = 'EndpointRefused'
  readonly code = 'ENDPOINT_REFUSED'
}

/** Allows every origin at a public address. */
const PUBLIC = 'public'

const NOT_LISTED = 'it is not in OPENHANDS_LLM_ALLOW'

/** `allowed`: origins, wildcard hosts such as `*.example.org`, and `public`. */
export function createEndpointRules(allowedEntries: readonly string[], lookup: Lookup = lookupAll): EndpointRules {
  const isPublicAllowed = allowedEntries.includes(PUBLIC)
  const isListed = createOriginTest(allowedEntries.filter((entry) => entry !== PUBLIC))
  const rules = createAddressRules([])
  return {
    async refusal(url) {
      if (isListed(new URL(url))) return undefined
      return isPublicAllowed ? await foreseeRefusal(rules, lookup, url) : NOT_LISTED
    },
    async connector() {
      const [listedConnector, guardedConnector] = await Promise.all([
        createConnector(),
        createGuardedConnector(rules, lookup),
      ])
      return (options, callback) => {
        const url = new URL(`${options.protocol}//${options.host ?? options.hostname}`)
        if (isListed(url)) return listedConnector(options, callback)
        if (isPublicAllowed) return guardedConnector(options, callback)
        queueMicrotask(() => callback(new EndpointRefused(NOT_LISTED), null))
      }
    },
  }
}

/** Returns true for a valid entry of the list. */
export function isEndpointRule(entry: string): boolean {
  if (entry === PUBLIC) return true
  if (entry.startsWith('*.')) return WILDCARD.test(entry)
  const url = URL.parse(entry)
  // Refuse a path, a query and user information: they would be ignored, although they were meant to limit something.
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` && !entry.includes('*')
}

const WILDCARD = /^\*(\.[a-z\d]([a-z\d-]{0,61}[a-z\d])?){1,10}$/i

/** An origin is one scheme, host and port; a wildcard is any scheme and port of the hosts below its name. */
function createOriginTest(entries: readonly string[]): (url: URL) => boolean {
  const endings = entries.filter((entry) => entry.startsWith('*.')).map((entry) => entry.slice(1).toLowerCase())
  const origins = new Set(entries.filter((entry) => !entry.startsWith('*.')).map((entry) => new URL(entry).origin))
  return ({ origin, hostname }) =>
    origins.has(origin) || endings.some((ending) => hostname.replace(/\.$/, '').endsWith(ending))
}
