/** One entry of an allow or deny list: parses it, matches hosts, and compares entries. */
import type { Host } from './host.ts'
import { parseHost, parsePort, splitPort } from './host.ts'

export type AllowEntry = {
  readonly hosts:
    | { readonly kind: 'all' }
    /** The suffix of `*.example.org` is `.example.org`. */
    | { readonly kind: 'below'; readonly suffix: string }
    | Host
  readonly ports: 'web' | 'all' | number
}

const WEB_PORTS = [80, 443]

/** Returns undefined for an invalid entry. */
export function parseEntry(text: string): AllowEntry | undefined {
  // A bare IPv6 address has colons, but no port.
  const { host, port } = (parseHost(text) ? { host: text, port: undefined } : splitPort(text)) ?? {}
  const hosts = host === undefined ? undefined : parseHosts(host)
  const ports = port === undefined ? 'web' : port === '*' ? 'all' : parsePort(port)
  return hosts && ports !== undefined ? { hosts, ports } : undefined
}

function parseHosts(text: string): AllowEntry['hosts'] | undefined {
  if (text === '*') return { kind: 'all' }
  if (!text.startsWith('*.')) return parseHost(text)
  const parent = parseHost(text.slice(2))
  return parent?.kind === 'name' ? { kind: 'below', suffix: `.${parent.name}` } : undefined
}

export function matches({ hosts, ports }: AllowEntry, host: Host, port: number): boolean {
  return isOneOf(hosts, host) && (ports === 'all' || (ports === 'web' ? WEB_PORTS.includes(port) : ports === port))
}

/** Returns true if `wide` matches everything that `narrow` matches. */
export function includes(wide: AllowEntry, narrow: AllowEntry): boolean {
  return includesHosts(wide.hosts, narrow.hosts) && includesPorts(wide.ports, narrow.ports)
}

function isOneOf(hosts: AllowEntry['hosts'], host: Host): boolean {
  switch (hosts.kind) {
    case 'all':
      return true
    case 'below':
      return host.kind === 'name' && host.name.endsWith(hosts.suffix)
    case 'name':
      return host.kind === 'name' && host.name === hosts.name
    case 'address':
      return host.kind === 'address' && host.address === hosts.address
    default:
      return hosts satisfies never
  }
}

function includesHosts(wide: AllowEntry['hosts'], narrow: AllowEntry['hosts']): boolean {
  if (narrow.kind === 'name' || narrow.kind === 'address') return isOneOf(wide, narrow)
  if (wide.kind === 'all') return true
  return wide.kind === 'below' && narrow.kind === 'below' && narrow.suffix.endsWith(wide.suffix)
}

function includesPorts(wide: AllowEntry['ports'], narrow: AllowEntry['ports']): boolean {
  return wide === 'all' || wide === narrow || (wide === 'web' && WEB_PORTS.some((port) => port === narrow))
}
