/** Authentication: the bearer master key, compared in constant time. The only file that sees what clients send as a key. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Problem } from '../../contract/problem.ts'

/** Answers the key's fingerprint. Throws a `Problem` unless the header holds one of the keys. */
export type Authenticate = (header: string | undefined) => string

export function createAuthenticator(keys: readonly string[]): Authenticate {
  // Digests under a random key have one length and tell nothing of how far a guess was right.
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  const known = keys.map((key) => ({ digest: digest(key), fingerprint: fingerprintOf(key) }))

  return (header) => {
    const token = tokenIn(header)
    if (token === undefined) {
      throw new Problem('unauthorized', 'Send the master key: Authorization: Bearer <OPENHANDS_MASTER_KEY>.')
    }
    const given = digest(token)
    // All of them, whichever fits: the time taken tells nothing of which key it was.
    const matches = known.filter((key) => timingSafeEqual(key.digest, given))
    if (!matches[0])
      throw new Problem('unauthorized', 'The key is not a master key of this server. Check OPENHANDS_MASTER_KEY.')
    return matches[0].fingerprint
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
