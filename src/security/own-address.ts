/**
 * Knows which addresses belong to this machine, public ones included: a firewall does not block connections from the
 * machine itself, and services may trust them.
 */
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

const OWN_ADDRESSES_AGE_MS = 5000

let own: { readonly addresses: ReadonlySet<string>; readonly at: number } | undefined

/** Connections to an unspecified address reach the machine itself, too. */
const LOCAL_RANGES: ReadonlySet<string> = new Set(['loopback', 'unspecified'])

export const isLoopback = (address: string): boolean => LOCAL_RANGES.has(ipaddr.process(address).range())

/** True only for an address of this machine that no other one can have; false for a name. */
export const isLoopbackText = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'

/** `address` in its canonical form. */
export function isOwnAddress(address: string): boolean {
  if (isLoopback(address)) return true
  // Reading the interfaces takes longer than everything else about a connection.
  if (own === undefined || performance.now() - own.at > OWN_ADDRESSES_AGE_MS) {
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    const addresses = all.map((each) => ipaddr.process(each.address).toString())
    own = { addresses: new Set(addresses), at: performance.now() }
  }
  return own.addresses.has(address)
}
