/** The secrets of each conversation, encrypted, as a document. */
import { z } from 'zod'
import { Problem } from '../../contract/problem.ts'
import type { KeyMaterial, Sealer } from '../../security/sealer.ts'
import { createSealers } from '../../security/sealer.ts'
import type { SecretValues } from '../storage.ts'
import { WRITE_DOCUMENT, readDocument, setDocumentAside } from './documents.ts'
import type { RowOwnership } from './ownership.ts'

const Values = z.record(z.string(), z.record(z.string(), z.string()))

const NAME = 'secrets'

export class SecretRows {
  readonly #ownership: RowOwnership
  readonly #sealerOf: (owner: string) => Sealer
  readonly #unreadable = new Set<string>()

  constructor(ownership: RowOwnership, keyMaterial: KeyMaterial) {
    this.#ownership = ownership
    this.#sealerOf = createSealers(keyMaterial)
  }

  /** Returns an empty object if the conversation has no secrets. Throws a `Problem` if no key decrypts them. */
  async read(id: string): Promise<SecretValues> {
    const sealedText = await readDocument(this.#ownership.database, id, NAME)
    if (sealedText === undefined) return {}
    const text = this.#sealerOf(id).unseal(Buffer.from(sealedText, 'base64'))?.toString()
    if (text !== undefined) return Values.parse(JSON.parse(text))
    this.#unreadable.add(id)
    throw new Problem(
      'storage_failed',
      `The secrets of conversation ${id} were encrypted with another key; start the server with it (OPENHANDS_SECRET_KEY, or the old master key after a comma), or send the secrets again.`,
    )
  }

  /** Replaces all secrets. Those that could not be decrypted are kept under another name. */
  async write(id: string, values: SecretValues): Promise<void> {
    if (this.#unreadable.delete(id)) await setDocumentAside(this.#ownership, id, NAME, 'unreadable')
    const { name, value } = this.documentOf(id, values)
    await this.#ownership.write(WRITE_DOCUMENT, id, [name, value])
  }

  documentOf(id: string, values: SecretValues): { readonly name: string; readonly value: string } {
    return {
      name: NAME,
      value: this.#sealerOf(id)
        .seal(Buffer.from(JSON.stringify(values)))
        .toString('base64'),
    }
  }

  /** Encrypts other data of a conversation that contains secrets. It cannot be confused with its secrets. */
  sealerFor(id: string): Sealer {
    return this.#sealerOf(`${id} content`)
  }
}
