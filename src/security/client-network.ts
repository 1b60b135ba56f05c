/**
 * Groups addresses by client for counting: one machine in IPv4; in IPv6 a network, of which each client has many
 * addresses.
 */
import ipaddr from 'ipaddr.js'

/** The minimum that a provider assigns to one customer (RFC 6177). */
const IPV6_PREFIX_BITS = 64

/** Converts an IPv4-mapped IPv6 address to IPv4. Returns invalid addresses unchanged. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const plainAddress = ipaddr.process(address)
  return plainAddress.kind() === 'ipv4'
    ? plainAddress.toString()
    : ipaddr.IPv6.networkAddressFromCIDR(`${plainAddress.toString()}/${IPV6_PREFIX_BITS}`).toString()
}
