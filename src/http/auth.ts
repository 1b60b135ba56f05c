/** Who may call: the bearer master key, compared in constant time. The only file that sees what clients send as a key. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Problem } from '../contract/problem.ts'

/** Throws a `Problem` unless the header holds one of the keys. */
export type Authenticate = (header: string | undefined) => void

export function createAuthenticator(keys: readonly string[]): Authenticate {
  // Digests under a random key have one length and tell nothing of how far a guess was right.
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  const digests = keys.map(digest)

  return (header) => {
    const token = /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1]
    if (token === undefined) {
      throw new Problem('unauthorized', 'Send the master key: Authorization: Bearer <OPENHANDS_MASTER_KEY>.')
    }
    const given = digest(token)
    // All of them, whichever fits: the time taken tells nothing of which key it was.
    const matches = digests.filter((known) => timingSafeEqual(known, given))
    if (!matches.length) throw new Problem('unauthorized', 'The key is not the master key of this server.')
  }
}
