/**
 * Hashes a request body for its `Idempotency-Key`. Keyed, because readers of the log see the hash, and a body may
 * contain a credential that could be guessed from a plain hash.
 */
import { createHmac, hkdfSync } from 'node:crypto'
import { canonicalJson } from '../lib/json/canonical-json.ts'

export type BodyHash = {
  /** HMAC-SHA-256, hexadecimal. */
  readonly bodyHash: string
  /** The hashes under the former keys, during a key change. */
  readonly formerHashes: readonly string[]
}

/** Equal bodies on the same route have equal hashes, however they were formatted. */
export type HashBody = (route: string, body: unknown) => BodyHash

/** `keyMaterial` as in the secret store: the first key is used, the others are former ones. */
export function createBodyHash(keyMaterial: readonly [string, ...string[]]): HashBody {
  let keys: Buffer[] | undefined
  return (route, body) => {
    const text = `${route}\n${canonicalJson(body)}`
    const [bodyHash, ...formerHashes] = (keys ??= keyMaterial.map(deriveKey)).map((key) => hmac(key, text))
    // oxlint-disable-next-line typescript/no-non-null-assertion -- there is at least one key
    return { bodyHash: bodyHash!, formerHashes }
  }
}

const deriveKey = (material: string) => Buffer.from(hkdfSync('sha256', material, '', 'agent-server body hash v1', 32))

const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest('hex')
