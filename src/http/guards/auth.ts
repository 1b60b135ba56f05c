/** Authentication: the master key, compared in constant time, or an API key. The only file that sees what clients send as a key. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Access } from '../../access/access.ts'
import type { ApiKeys } from '../../access/api-keys.ts'
import { Problem } from '../../contract/problem.ts'

/** Which key it was, and what it may do. */
export type Authenticated = { readonly fingerprint: string; readonly access: Access }

/** Throws a `Problem` unless the header holds a master key or an API key. */
export type Authenticate = (header: string | undefined) => Authenticated

export function createAuthenticator(keys: readonly string[], apiKeys?: Pick<ApiKeys, 'find'>): Authenticate {
  // Digests under a random key have one length and tell nothing of how far a guess was right.
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  const access = Access.master()
  const known = keys.map((key) => ({ digest: digest(key), fingerprint: fingerprintOf(key) }))

  return (header) => {
    const token = tokenIn(header)
    if (token === undefined) {
      throw new Problem('unauthorized', 'Send the master key: Authorization: Bearer <OPENHANDS_MASTER_KEY>.')
    }
    const given = digest(token)
    // All of them, whichever fits: the time taken tells nothing of which key it was.
    const matches = known.filter((key) => timingSafeEqual(key.digest, given))
    if (matches[0]) return { fingerprint: matches[0].fingerprint, access }
    const found = apiKeys?.find(token)
    if (found) return { fingerprint: fingerprintOf(token), access: found }
    throw new Problem(
      'unauthorized',
      'The key is not a valid key of this server: it is wrong, expired or revoked. Check OPENHANDS_MASTER_KEY, or the API key.',
    )
  }
}

/** Of what a refused request brought as a key; undefined when it brought none. */
export function fingerprintIn(header: string | undefined): string | undefined {
  const token = tokenIn(header)
  return token === undefined ? undefined : fingerprintOf(token)
}

const tokenIn = (header = ''): string | undefined => /^Bearer +(\S+) *$/i.exec(header)?.[1]

/** Tells keys apart in the log, and is the same after a restart. Too short to find even a weak key by: many have the same. */
function fingerprintOf(key: string): string {
  return createHash('sha256').update(`agent-server key ${key}`).digest('hex').slice(0, FINGERPRINT_CHARS)
}

const FINGERPRINT_CHARS = 6
