/** Detects which protocol a client of the proxy uses, and reads its request. */
import { parseHttp } from './http-request.ts'
import type { Step } from './proxy-request.ts'
import { parseSocks, SOCKS_VERSION } from './socks.ts'

/** Anything larger is not a handshake. */
export const MAX_HANDSHAKE_BYTES = 16 * 1024

/**
 * One connection uses one protocol, which its first byte identifies. The function is called with all unused bytes
 * whenever more have arrived.
 */
export function createHandshake(): (bytes: Buffer) => Step | undefined {
  let isGreeted = false
  return (bytes) => {
    if (bytes.length === 0) return undefined
    const step = isGreeted || bytes[0] === SOCKS_VERSION ? parseSocks(bytes, isGreeted) : parseHttp(bytes)
    if (step?.kind === 'reply') isGreeted = true
    return step ?? (bytes.length > MAX_HANDSHAKE_BYTES ? { kind: 'fault', bytes: Buffer.alloc(0) } : undefined)
  }
}
