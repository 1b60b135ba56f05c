/** Whom an address stands for where clients are counted: one machine in IPv4; in IPv6 a network, of which each has many addresses. */
import ipaddr from 'ipaddr.js'

/** What a provider gives to one customer at least (RFC 6177). */
const IPV6_PREFIX_BITS = 64

/** An IPv4 address that is written as an IPv6 one is what it means. What is no address is taken as it is. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const meant = ipaddr.process(address)
  return meant.kind() === 'ipv4'
    ? meant.toString()
    : ipaddr.IPv6.networkAddressFromCIDR(`${meant.toString()}/${IPV6_PREFIX_BITS}`).toString()
}
