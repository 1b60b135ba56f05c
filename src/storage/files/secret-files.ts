/** Stores secrets: one encrypted file per conversation, `secrets.enc` in its directory. */
import { readFile, rename } from 'node:fs/promises'
import { z } from 'zod'
import { Problem } from '../../contract/problem.ts'
import { SyncedFile, replaceFile } from '../../lib/durable-file.ts'
import { ignoreMissing } from '../../lib/error-code.ts'
import type { KeyMaterial, Sealer } from '../../security/sealer.ts'
import { createSealers } from '../../security/sealer.ts'
import type { SecretValues } from '../storage.ts'

const Values = z.record(z.string(), z.record(z.string(), z.string()))

export class SecretFiles {
  /** Contains one directory per conversation. */
  readonly #directory: string
  readonly #sealerOf: (owner: string) => Sealer
  readonly #unreadable = new Set<string>()

  constructor(directory: string, keyMaterial: KeyMaterial) {
    this.#directory = directory
    this.#sealerOf = createSealers(keyMaterial)
  }

  /** Returns an empty object if the conversation has no secrets. Throws a `Problem` if no key decrypts the file. */
  async read(conversationId: string): Promise<SecretValues> {
    const sealedText = await readFile(this.#pathOf(conversationId)).catch(ignoreMissing)
    if (!sealedText) return {}
    const text = this.#sealerOf(conversationId).unseal(sealedText)?.toString()
    if (text !== undefined) return Values.parse(JSON.parse(text))
    this.#unreadable.add(conversationId)
    throw new Problem(
      'storage_failed',
      `The secrets of conversation ${conversationId} were encrypted with another key; start the server with it (OPENHANDS_SECRET_KEY, or the old master key after a comma), or send the secrets again.`,
    )
  }

  /**
   * Creates the file of a new conversation, for the caller to close: `writeFirst` makes its content durable, and a sync of
   * the new directory its name. Not `replaceFile`: the file is new, and the creation syncs it together with the log.
   */
  async create(conversationId: string): Promise<SyncedFile> {
    return await SyncedFile.create(this.#pathOf(conversationId))
  }

  async writeFirst(file: SyncedFile, conversationId: string, values: SecretValues): Promise<void> {
    await file.write(this.#seal(conversationId, values))
  }

  /**
   * Replaces all secrets; durable when it resolves. A file that could not be decrypted is kept under another name,
   * because its key may be found again.
   */
  async write(conversationId: string, values: SecretValues): Promise<void> {
    const path = this.#pathOf(conversationId)
    if (this.#unreadable.delete(conversationId)) await setAside(path)
    await replaceFile(path, this.#seal(conversationId, values))
  }

  /** Encrypts other data of a conversation that contains secrets. It cannot be confused with `secrets.enc`. */
  sealerFor(conversationId: string): Sealer {
    return this.#sealerOf(`${conversationId} content`)
  }

  #seal(conversationId: string, values: SecretValues): Buffer {
    return this.#sealerOf(conversationId).seal(Buffer.from(JSON.stringify(values)))
  }

  #pathOf(conversationId: string): string {
    return `${this.#directory}/${conversationId}/secrets.enc`
  }
}

async function setAside(path: string): Promise<void> {
  await rename(path, `${path}.unreadable-${Date.now()}`).catch(ignoreMissing)
}
