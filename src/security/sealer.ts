/** Encryption at rest: AES-256-GCM. The only file that knows the cipher and its key derivation. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** `unseal` returns undefined if no key decrypts the data, or it was modified. */
export type Sealer = {
  readonly seal: (content: Buffer) => Buffer
  readonly unseal: (sealed: Buffer) => Buffer | undefined
}

/** The operator's keys and those derived from them; the first encrypts, each is tried to decrypt. */
export type KeyMaterial = readonly [string, ...string[]]

const NONCE_BYTES = 12
const TAG_BYTES = 16
const FORMAT = 1

/**
 * Creates sealers that share their keys: data sealed for one owner cannot be decrypted for another. Derives the keys
 * once, on first use: HKDF is cheap, but not free, and creates are frequent.
 */
export function createSealers(keyMaterial: KeyMaterial): (owner: string) => Sealer {
  let derivedKeys: Buffer[] | undefined
  const keys = () => (derivedKeys ??= keyMaterial.map(deriveKey))
  return (owner) => ({
    // oxlint-disable-next-line typescript/no-non-null-assertion -- there is a key for each material, and at least one
    seal: (content) => seal(content, keys()[0]!, owner),
    unseal: (sealedBytes) => unsealWithAny(sealedBytes, keys(), owner),
  })
}

const deriveKey = (material: string) => Buffer.from(hkdfSync('sha256', material, '', 'agent-server secrets v1', 32))

/** Format byte, nonce, tag, ciphertext; bound to its owner, so that files cannot be swapped between two. */
function seal(content: Buffer, key: Buffer, owner: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
  const body = Buffer.concat([cipher.update(content), cipher.final()])
  return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), body])
}

function unsealWithAny(sealedBytes: Buffer, keys: readonly Buffer[], owner: string): Buffer | undefined {
  for (const key of keys) {
    const content = unseal(sealedBytes, key, owner)
    if (content) return content
  }
  return undefined
}

function unseal(sealedBytes: Buffer, key: Buffer, owner: string): Buffer | undefined {
  if (sealedBytes[0] !== FORMAT || sealedBytes.length < 1 + NONCE_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, sealedBytes.subarray(1, 1 + NONCE_BYTES))
    .setAAD(Buffer.from(owner))
    .setAuthTag(sealedBytes.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealedBytes.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()])
  } catch {
    return undefined // another key, or the file was modified
  }
}
