/**
 * Authenticates requests by the master key, compared in constant time, or by an API key. The only file that handles
 * keys sent by clients.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { Access } from '../../access/access.ts'
import type { ApiKeys } from '../../access/api-keys.ts'
import { Problem } from '../../contract/problem.ts'

/** The fingerprint of the key and its permissions. `isForwarded`: another instance has checked the key. */
export type AuthenticatedClient = {
  readonly fingerprint: string
  readonly access: Access
  readonly isForwarded?: boolean
}

/** Rejects with a `Problem` unless the header contains a key that is valid on this connection. */
export type Authenticate = (header: string | undefined, connection: object) => Promise<AuthenticatedClient>

/** A credential that is accepted as a master key, and only on these connections. */
export type LocalCredential = {
  readonly credential: string
  readonly connections: { readonly has: (connection: object) => boolean }
}

/** `innerClients`: those that this process asks for, by their connections, which need no key. */
export function createAuthenticator(
  keys: readonly string[],
  apiKeys?: Pick<ApiKeys, 'find'>,
  local?: LocalCredential,
  innerClients?: Pick<WeakMap<object, AuthenticatedClient>, 'get'>,
): Authenticate {
  // Digests under a random key have equal length and reveal nothing about how close a guess was.
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  const access = Access.master()
  const knownBy = (key: string) => ({ digest: digest(key), fingerprint: fingerprintOf(key) })
  const masters = keys.map(knownBy)
  const ofLocal = local && knownBy(local.credential)

  return async (header, connection) => {
    const innerClient = innerClients?.get(connection)
    if (innerClient) return stillValid(innerClient)
    const token = tokenIn(header)
    if (token === undefined) throw !header ? noKey() : notBearer()
    const tokenDigest = digest(token)
    // Compare with all keys, even after a match: the time reveals nothing about which key it was.
    const [match] = masters.filter((key) => timingSafeEqual(key.digest, tokenDigest))
    if (match) return { fingerprint: match.fingerprint, access }
    if (ofLocal && timingSafeEqual(ofLocal.digest, tokenDigest) && local.connections.has(connection))
      return { fingerprint: ofLocal.fingerprint, access }
    const foundAccess = await apiKeys?.find(token)
    if (foundAccess) return { fingerprint: fingerprintOf(token), access: foundAccess }
    throw new Problem(
      'unauthorized',
      'The key is not a valid key of this server: it is wrong, expired or revoked. Check OPENHANDS_MASTER_KEY, or the API key.',
    )
  }
}

function stillValid(client: AuthenticatedClient): AuthenticatedClient {
  client.access.requireValid()
  return client
}

const noKey = () =>
  new Problem('unauthorized', 'Send the master key or an API key in the header Authorization: Bearer KEY.')

const notBearer = () =>
  new Problem(
    'unauthorized',
    'The Authorization header is not of the form Bearer KEY. Send the word Bearer and one key.',
  )

/** Returns the fingerprint of a refused key; undefined if the request had none. */
export function fingerprintIn(header: string | undefined): string | undefined {
  const token = tokenIn(header)
  return token === undefined ? undefined : fingerprintOf(token)
}

/** Returns the key in an `Authorization` header. */
export const tokenIn = (header = ''): string | undefined => /^Bearer +(\S+) *$/i.exec(header)?.[1]

/**
 * Identifies keys in the log, also across restarts. Too short to find even a weak key by: many keys share one
 * fingerprint.
 */
function fingerprintOf(key: string): string {
  return createHash('sha256').update(`agent-server key ${key}`).digest('hex').slice(0, FINGERPRINT_CHARS)
}

const FINGERPRINT_CHARS = 6
