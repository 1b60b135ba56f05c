/** What an `Idempotency-Key` remembers of its request. Keyed, for the log shows it to readers, and a body may hold a credential that could be guessed from a plain hash. */
import { createHmac, hkdfSync } from 'node:crypto'
import { canonicalJson } from '../lib/json/canonical-json.ts'

export type BodyHash = {
  /** HMAC-SHA-256, hexadecimal. */
  readonly bodyHash: string
  /** As it was under the keys before, while they change. */
  readonly formerHashes: readonly string[]
}

/** The same body is the same value, however it was written, sent to the same route. */
export type HashBody = (route: string, body: unknown) => BodyHash

/** `keyMaterial` as the secret store has it: the first is used, the others are those of before. */
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
