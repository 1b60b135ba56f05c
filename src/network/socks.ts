/** SOCKS 5 (RFC 1928) as far as the proxy supports it: no authentication, CONNECT only, the server resolves names. */
import type { ProxyRefusal, Step } from './proxy-request.ts'
import type { Host } from './host.ts'
import { parseHost } from './host.ts'

export const SOCKS_VERSION = 5
const NO_AUTHENTICATION = 0
const NO_METHOD = 0xff
const CONNECT = 1
const [IPV4, NAME, IPV6] = [1, 3, 4] as const
const REPLY = { succeeded: 0, failed: 1, denied: 2, unreachable: 4, command: 7, address: 8 }

export function parseSocks(bytes: Buffer, isGreeted: boolean): Step | undefined {
  return isGreeted ? parseRequest(bytes) : parseGreeting(bytes)
}

function parseGreeting(bytes: Buffer): Step | undefined {
  const count = bytes[1]
  if (count === undefined || bytes.length < 2 + count) return undefined
  const usedBytes = 2 + count
  if (!bytes.subarray(2, usedBytes).includes(NO_AUTHENTICATION))
    return { kind: 'fault', bytes: Buffer.of(SOCKS_VERSION, NO_METHOD) }
  return { kind: 'reply', used: usedBytes, bytes: Buffer.of(SOCKS_VERSION, NO_AUTHENTICATION) }
}

function parseRequest(bytes: Buffer): Step | undefined {
  const [version, command, , type = 0, nameLength = 0] = bytes
  if (version !== SOCKS_VERSION) return { kind: 'fault', bytes: reply(REPLY.failed) }
  // The minimum length of a request, including the length of a name.
  if (bytes.length < 5) return undefined
  const length = type === IPV4 ? 4 : type === IPV6 ? 16 : type === NAME ? 1 + nameLength : undefined
  if (length === undefined) return { kind: 'fault', bytes: reply(REPLY.address) }
  const usedBytes = 4 + length + 2
  if (bytes.length < usedBytes) return undefined
  if (command !== CONNECT) return { kind: 'fault', bytes: reply(REPLY.command) }
  const host = hostOf(bytes.subarray(4, 4 + length), type)
  const port = bytes.readUInt16BE(4 + length)
  if (!host || port === 0) return { kind: 'fault', bytes: reply(REPLY.failed) }
  const refusal = (why: ProxyRefusal) => reply(REPLY[why])
  const acceptance = reply(REPLY.succeeded)
  return {
    kind: 'request',
    used: usedBytes,
    request: { host, port, head: NOTHING, more: 'all', accepted: acceptance, refused: refusal },
  }
}

const NOTHING = Buffer.alloc(0)

function hostOf(bytes: Buffer, type: number): Host | undefined {
  if (type === IPV4) return parseHost(bytes.join('.'))
  if (type === NAME) return parseHost(bytes.subarray(1).toString('utf8'))
  return parseHost(Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(':'))
}

/** Does not reveal the local address of the connection. */
const reply = (code: number) => Buffer.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0)
