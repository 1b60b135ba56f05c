/** Which addresses the server may be made to call: public ones, and what the operator allowed. The only file that judges an address. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type AddressRules = {
  /** Why nothing is sent to this address of that host, as a clause; undefined when it may be called. */
  readonly refusal: (address: string, host: string) => string | undefined
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** `allowed`: addresses, CIDR ranges, and names of hosts, which may then be at any address. */
export function createAddressRules(allowed: readonly string[]): AddressRules {
  const ranges = allowed.filter(isRange).map(parseRange)
  const hosts = new Set(allowed.filter((entry) => !isRange(entry)).map(plainHost))

  return {
    refusal(address, host) {
      // An IPv4 address that is written as an IPv6 one is what it means.
      const meant = ipaddr.process(address)
      const range = rangeOf(meant)
      if (range === 'unicast' || hosts.has(plainHost(host)) || ranges.some((one) => isIn(meant, one))) return undefined
      return `its address is not a public one (${range})`
    },
  }
}

/** Whether it can stand in a list of what is allowed. */
export function isAddressRule(entry: string): boolean {
  return entry.includes('/') ? isRange(entry) : isRange(entry) || HOST.test(entry)
}

/** The one way to write an address: an IPv4 address that is written as an IPv6 one is what it means. */
export const canonicalAddress = (address: string): string => ipaddr.process(address).toString()

/** Not of digits alone: that would be an address that somebody wrote wrongly. */
const HOST = /^(?=.{1,253}$)(?!.*(^|\.)\d+$)[a-z\d]([a-z\d_-]*[a-z\d])?(\.[a-z\d]([a-z\d_-]*[a-z\d])?)*$/i

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

/** Public by its number, but the host's own platform answers there: Azure gives virtual machines their settings at it. */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16'])

/** The library takes what nobody has assigned for unicast too; all that is public in IPv6 is in 2000::/3 (RFC 4291). */
function rangeOf(address: Address): string {
  if (PLATFORM_ADDRESSES.has(address.toString())) return 'platform'
  const range = address.range()
  return range === 'unicast' && 'parts' in address && (address.parts[0] ?? 0) >>> 13 !== 1 ? 'unassigned' : range
}

const plainHost = (host: string) => host.toLowerCase().replace(/\.$/, '')
