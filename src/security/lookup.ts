/** Resolves names of hosts, as the system does. */
import { lookup as systemLookup } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'

/** Returns every address of a name. */
export type Lookup = (hostname: string) => Promise<{ address: string; family: number }[]>

/** Lookups that have no result yet, by name. */
const running = new Map<string, ReturnType<Lookup>>()

/**
 * Resolves like the system, including `/etc/hosts`, at most once at a time for each name. A lookup occupies a thread until
 * a name server answers, and libuv lets only half of its threads look up names, so that the others remain for the files of the
 * logs: many connections to one unresponsive name would delay all other names.
 */
export const lookupAll: Lookup = (hostname) => {
  const knownLookup = running.get(hostname)
  if (knownLookup) return knownLookup
  const newLookup = systemLookup(hostname, { all: true }).finally(() => running.delete(hostname))
  running.set(hostname, newLookup)
  return newLookup
}

/** Returns the lookup in the form that connections expect. */
export function asNodeLooksUp(lookup: Lookup): LookupFunction {
  const lookUp = callbackify(lookup)
  return (hostname, { all }, callback) => {
    lookUp(hostname, (error, addresses) => {
      if (error) callback(error, '')
      else if (all) callback(null, addresses)
      // oxlint-disable-next-line typescript/no-non-null-assertion -- a lookup without an address rejects
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}
