/**
 * The memory of the keys that created a conversation. Not the log, as for what is posted: a key must be found without
 * opening any conversation, and also when what it made is deleted.
 */
import type { CreationKey } from '../../storage/storage.ts'
import { KEY_LIFETIME_MS } from './idempotency.ts'

export class CreatedKeys {
  /** The newest of each key. Those that were remembered first come first, so the old ones are found at the beginning. */
  readonly #remembered = new Map<string, CreationKey>()

  of(key: string): CreationKey[] {
    const own = this.#remembered.get(key)
    return own ? [own] : []
  }

  /** For a day, also when what it made is deleted: a request that comes late must not make it again. */
  remember(created: readonly CreationKey[]): void {
    const oldest = Date.now() - KEY_LIFETIME_MS
    for (const one of created) this.#remember(one, oldest)
  }

  #remember(created: CreationKey, oldest: number): void {
    for (const [key, { at }] of this.#remembered) {
      if (Date.parse(at) > oldest) break
      this.#remembered.delete(key)
    }
    const { key, at } = created
    const known = this.#remembered.get(key)
    if (Date.parse(at) <= oldest || (known && known.at > at)) return
    this.#remembered.delete(key)
    this.#remembered.set(key, created)
  }
}
