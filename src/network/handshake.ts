/** Finds out which protocol a client of the proxy speaks, and reads its request in that. */
import { parseHttp } from './http-request.ts'
import type { Step } from './proxy-request.ts'
import { parseSocks, SOCKS_VERSION } from './socks.ts'

/** More than this is no handshake. */
export const MAX_HANDSHAKE_BYTES = 16 * 1024

/**
 * One connection speaks one protocol, which its first byte tells. The function is called with all bytes that are not used
 * yet, each time more have come.
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
