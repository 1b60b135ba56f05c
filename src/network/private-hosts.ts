/** Private addresses that the operator opens for conversations: parses and matches them. */
import { BlockList, isIP } from 'node:net'
import { isLoopback, isOwnAddress } from '../security/own-address.ts'
import { canonicalAddress } from '../security/public-address.ts'
import { parseHost, parsePort, splitPort } from './host.ts'
import type { Host } from './host.ts'

export type PrivateRule = {
  /** The rule applies to this name only, and the name resolves to the address. */
  readonly name: string | undefined
  readonly address: string
  readonly prefix: number
  /** Undefined: every port. */
  readonly port: number | undefined
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** These return the machine's credentials to any client. No rule opens them. */
const METADATA = listOf([
  ['169.254.0.0', 16],
  ['fe80::', 10],
  ['fd00:ec2::254', 128],
  ['fd20:ce::254', 128],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
])
export const isMetadata = (address: string): boolean => METADATA.check(address, familyOf(address))

/**
 * Parses `address`, `network/bits` or `name=address`, each optionally with `:port`. Returns a rule, or a clause about
 * the error.
 */
export function parsePrivateRule(text: string): PrivateRule | { readonly wrong: string } {
  const [name, target] = text.includes('=') ? text.split('=', 2) : [undefined, text]
  const host = name === undefined ? undefined : parseHost(name)
  if (name !== undefined && host?.kind !== 'name') return { wrong: `${name} is not a host name` }
  const place = parsePlace(target ?? '')
  if (!place) return { wrong: `${text} is neither address:port nor name=address:port` }
  if (METADATA.check(place.address, familyOf(place.address)))
    return { wrong: `${place.address} is link-local, which serves credentials of the machine; it is never opened` }
  if (isLoopback(place.address) && place.port === undefined)
    return { wrong: `${place.address} needs a port: it would open all services of this machine` }
  if (host && place.prefix !== (isIP(place.address) === 6 ? 128 : 32))
    return { wrong: `${text} is not a single address` }
  return { ...place, name: host?.kind === 'name' ? host.name : undefined }
}

function parsePlace(text: string): Omit<PrivateRule, 'name'> | undefined {
  const [, network = '', bits, more] = /^([^/]*)(?:\/(\d{1,3})(:.*)?)?$/.exec(text) ?? []
  const split = isIP(network) ? { host: network, port: undefined } : splitPort(`${network}${more ?? ''}`)
  const ofNetwork = more === undefined ? split?.port : more.slice(1)
  const address = split?.host.replace(/^\[|\]$/g, '') ?? ''
  const width = isIP(address) === 6 ? 128 : 32
  const prefix = bits === undefined ? width : Number(bits)
  const port = ofNetwork === undefined ? undefined : parsePort(ofNetwork)
  if (isIP(address) === 0 || prefix > width || (ofNetwork !== undefined && port === undefined)) return undefined
  return { address: canonicalAddress(address), prefix, port }
}

/** Returns the addresses that the operator configured for a name. */
export function addressesOf(rules: readonly PrivateRule[], name: string): string[] {
  return rules.filter((rule) => rule.name === name).map(({ address }) => address)
}

/**
 * Returns a function that decides whether the operator opens this address for this host. A rule without a port opens no
 * address of this machine itself.
 */
export function createPrivateHosts(
  rules: readonly PrivateRule[],
): (address: string, port: number, host: Host) => boolean {
  const lists = rules.map((rule) => ({ ...rule, list: listOf([[rule.address, rule.prefix]]) }))
  return (address, port, host) =>
    lists.some(
      (rule) =>
        (rule.port === undefined ? !isOwnAddress(address) : rule.port === port) &&
        (rule.name === undefined || (host.kind === 'name' && host.name === rule.name)) &&
        rule.list.check(address, familyOf(address)),
    )
}

function listOf(subnets: readonly (readonly [address: string, prefix: number])[]): BlockList {
  const list = new BlockList()
  // The test of a whole address compiles a large pattern, which each start would wait for.
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, address.includes(':') ? 'ipv6' : 'ipv4')
  return list
}
