/**
 * Parses the name or address of a host in every notation that clients use. The only file that decides a host's
 * canonical name.
 */
import { isIP } from 'node:net'
import { canonicalAddress } from '../security/public-address.ts'

/** `name` is in lower case and ASCII, without a trailing dot; `address` is in its shortest form. */
export type Host =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'address'; readonly address: string }

const MAX_NAME = 253
/** Underscores occur in real names, such as those of services. */
const NAME = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?){0,126}$/
/**
 * A URL parser would decode, cut off or skip these; `%` also begins the zone of an address, which is valid on one
 * machine only.
 */
const FORBIDDEN = /[\0-\x20\x7f%/?#@\\<>^|`{}"',;]/

/** Returns undefined for invalid text. Accepts addresses in any notation (decimal, octal, hexadecimal). */
export function parseHost(text: string): Host | undefined {
  if (text.length > 4 * MAX_NAME || FORBIDDEN.test(text)) return undefined
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  if (isIP(bare) === 6) return { kind: 'address', address: canonicalAddress(bare) }
  if (bare !== text || bare.includes(':')) return undefined
  // The WHATWG parser, as in browsers: it converts international names, and knows all notations of IPv4.
  const name = URL.parse(`http://${bare.replace(/\.$/, '')}/`)?.hostname ?? ''
  if (isIP(name) === 4) return { kind: 'address', address: name }
  return name.length <= MAX_NAME && NAME.test(name) ? { kind: 'name', name } : undefined
}

export const formatHost = (host: Host): string => (host.kind === 'name' ? host.name : host.address)

/** Formats as in a URL: an IPv6 address has brackets. */
export function formatTarget(host: Host, port: number): string {
  const text = formatHost(host)
  return `${text.includes(':') ? `[${text}]` : text}:${port}`
}

/** Splits `host:port`, `[address]:port` or `host`. Returns undefined for other text. */
export function splitPort(text: string): { readonly host: string; readonly port: string | undefined } | undefined {
  const [, bracketedHost, plain, port] = /^(?:(\[[^\]]*\])|([^:[\]]*))(?::([^:]*))?$/.exec(text) ?? []
  const host = bracketedHost ?? plain
  return host ? { host, port } : undefined
}

export function parsePort(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}
