/**
 * Decides which addresses the server may connect to on behalf of clients: public ones, and those that the operator
 * allowed. The only file that judges an address.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isOwnAddress } from './own-address.ts'

export type AddressRules = {
  /** Returns why the address of that host may not be used, as a clause; undefined if it may. */
  readonly refusal: (address: string, host: string) => string | undefined
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * `allowed`: addresses, CIDR ranges, and names of hosts, which may then have any address. Without it, no address of this
 * machine is used, not even a public one: its services may trust connections from itself.
 */
export function createAddressRules(
  allowedEntries: readonly string[],
  isOwn: (address: string) => boolean = isOwnAddress,
): AddressRules {
  const ranges = allowedEntries.filter(isRange).map(parseRange)
  const hosts = new Set(allowedEntries.filter((entry) => !isRange(entry)).map(plainHost))

  return {
    refusal(address, host) {
      // Convert an IPv4-mapped IPv6 address to IPv4.
      const plainAddress = ipaddr.process(address)
      if (hosts.has(plainHost(host)) || ranges.some((one) => isIn(plainAddress, one))) return undefined
      const range = rangeOf(plainAddress)
      if (range !== 'unicast') return `its address is not a public one (${range})`
      return isOwn(plainAddress.toString()) ? 'its address belongs to the server’s own machine' : undefined
    },
  }
}

/** Returns true for a valid entry of an allow list. */
export function isAddressRule(entry: string): boolean {
  return entry.includes('/') ? isRange(entry) : isRange(entry) || HOST.test(entry)
}

/** Returns the canonical form of an address: an IPv4-mapped IPv6 address becomes IPv4. */
export const canonicalAddress = (address: string): string => ipaddr.process(address).toString()

/** The name must not have digits alone: that would be a mistyped address. */
const HOST = /^(?=.{1,253}$)(?!.*(^|\.)\d+$)[a-z\d]([a-z\d_-]*[a-z\d])?(\.[a-z\d]([a-z\d_-]*[a-z\d])?){0,126}$/i

function isRange(entry: string): boolean {
  if (!entry.includes('/')) return isIP(entry) !== 0
  return ipaddr.IPv4.isValidCIDRFourPartDecimal(entry) || ipaddr.IPv6.isValidCIDR(entry)
}

function parseRange(entry: string): [Address, number] {
  if (entry.includes('/')) return ipaddr.parseCIDR(entry)
  const address = ipaddr.process(entry)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

function isIn(address: Address, [base, bits]: [Address, number]): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}

/** A public number, but served by the host's own platform: Azure gives virtual machines their settings there. */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16'])

/** The library also treats unassigned addresses as unicast; all public IPv6 addresses are in 2000::/3 (RFC 4291). */
function rangeOf(address: Address): string {
  if (PLATFORM_ADDRESSES.has(address.toString())) return 'platform'
  const range = address.range()
  return range === 'unicast' && 'parts' in address && (address.parts[0] ?? 0) >>> 13 !== 1 ? 'unassigned' : range
}

const plainHost = (host: string) => host.toLowerCase().replace(/\.$/, '')
