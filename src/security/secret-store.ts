/** Secrets at rest: one AES-256-GCM encrypted file per conversation. The only file that knows the cipher and its keys. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { open, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { Problem } from '../contract/problem.ts'
import { replaceFile } from '../lib/durable-file.ts'

/** What is kept: by name, in groups that do not mix (`llm`: the model's credentials). */
export const SecretValues = z.record(z.string(), z.record(z.string(), z.string()))
export type SecretValues = z.infer<typeof SecretValues>

/** The keys' own input: `secretKey` when the operator set one, else the master keys; the first encrypts, each is tried to decrypt. */
export type SecretStoreDeps = { directory: string; keyMaterial: readonly [string, ...string[]] }

export interface SecretStore {
  /** Empty when the conversation has none. Throws a `Problem` when no key opens the file. */
  read(conversationId: string): Promise<SecretValues>
  /** The first of a conversation that is being made: durable after `sync`, and once its new directory is synced. */
  create(conversationId: string, values: SecretValues): Promise<void>
  sync(conversationId: string): Promise<void>
  /** Replaces all; durable when it resolves. A file that could not be read is set aside beside it, for its key may be found again. */
  write(conversationId: string, values: SecretValues): Promise<void>
  /** For other things of a conversation that hold secrets. */
  sealerFor(conversationId: string): Sealer
}

/** `unseal` answers undefined when no key opens it, or it was changed. */
export type Sealer = {
  readonly seal: (content: Buffer) => Buffer
  readonly unseal: (sealed: Buffer) => Buffer | undefined
}

const NONCE_BYTES = 12
const TAG_BYTES = 16
const FORMAT = 1

export function createSecretStore({ directory, keyMaterial }: SecretStoreDeps): SecretStore {
  // Derived once per use and kept: HKDF is cheap, but not free, and creates are many.
  let keys: Buffer[] | undefined
  const derived = () => (keys ??= keyMaterial.map(deriveKey))
  const fileOf = (id: string) => join(directory, id, 'secrets.enc')
  const unreadable = new Set<string>()
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there is at least one key
  const sealFor = (id: string, values: SecretValues) => seal(Buffer.from(JSON.stringify(values)), derived()[0]!, id)

  return {
    async read(conversationId) {
      const sealed = await readFile(fileOf(conversationId)).catch(ignoreMissing)
      if (!sealed) return {}
      const text = unsealWithAny(sealed, derived(), conversationId)?.toString()
      if (text !== undefined) return SecretValues.parse(JSON.parse(text))
      unreadable.add(conversationId)
      throw new Problem(
        'storage_failed',
        `The secrets of conversation ${conversationId} were encrypted with another key; start the server with it (OPENHANDS_SECRET_KEY, or the old master key after a comma), or send the secrets again.`,
      )
    },
    // Not `replaceFile`: the file is new, and a create syncs it together with the log.
    async create(conversationId, values) {
      await writeFile(fileOf(conversationId), sealFor(conversationId, values), { flag: 'wx', mode: 0o600 })
    },
    async sync(conversationId) {
      await using file = await open(fileOf(conversationId), 'r')
      await file.datasync()
    },
    async write(conversationId, values) {
      if (unreadable.delete(conversationId)) await setAside(fileOf(conversationId))
      await replaceFile(fileOf(conversationId), sealFor(conversationId, values))
    },
    // Not `secrets.enc`, and never taken for it.
    sealerFor: (conversationId) => sealerWith(derived, `${conversationId} content`),
  }
}

/** What is sealed for one owner is opened for no other. */
export function createSealer(keyMaterial: readonly [string, ...string[]], owner: string): Sealer {
  const keys = keyMaterial.map(deriveKey)
  return sealerWith(() => keys, owner)
}

const sealerWith = (keys: () => Buffer[], owner: string): Sealer => ({
  // oxlint-disable-next-line typescript/no-non-null-assertion -- there is at least one key
  seal: (content) => seal(content, keys()[0]!, owner),
  unseal: (sealed) => unsealWithAny(sealed, keys(), owner),
})

const deriveKey = (material: string) => Buffer.from(hkdfSync('sha256', material, '', 'agent-server secrets v1', 32))

/** format byte, nonce, tag, ciphertext; bound to its owner, so that files cannot be swapped between two. */
function seal(content: Buffer, key: Buffer, owner: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
  const body = Buffer.concat([cipher.update(content), cipher.final()])
  return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), body])
}

function unsealWithAny(sealed: Buffer, keys: readonly Buffer[], owner: string): Buffer | undefined {
  for (const key of keys) {
    const content = unseal(sealed, key, owner)
    if (content) return content
  }
  return undefined
}

function unseal(sealed: Buffer, key: Buffer, owner: string): Buffer | undefined {
  if (sealed[0] !== FORMAT || sealed.length < 1 + NONCE_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + NONCE_BYTES))
    .setAAD(Buffer.from(owner))
    .setAuthTag(sealed.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()])
  } catch {
    return undefined // another key, or the file was changed
  }
}

async function setAside(path: string): Promise<void> {
  await rename(path, `${path}.unreadable-${Date.now()}`).catch(ignoreMissing)
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
