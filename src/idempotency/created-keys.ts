/**
 * Remembers the keys that created a conversation. The log cannot: a key must be found without opening any conversation,
 * and even after the conversation was deleted.
 */
import type { CreationKey } from '../storage/storage.ts'
import { KEY_LIFETIME_MS } from '../state/idempotency.ts'

export class CreatedKeys {
  /** The newest entry of each key, in insertion order, so that expired ones are at the beginning. */
  readonly #remembered = new Map<string, CreationKey>()

  of(key: string): CreationKey[] {
    const own = this.#remembered.get(key)
    return own ? [own] : []
  }

  /** Keeps the keys for a day, even if the conversation was deleted: a late retry must not create it again. */
  remember(createdKeys: readonly CreationKey[]): void {
    const oldest = Date.now() - KEY_LIFETIME_MS
    for (const one of createdKeys) this.#remember(one, oldest)
  }

  forget(createdKeys: readonly CreationKey[]): void {
    for (const { key, id } of createdKeys) if (this.#remembered.get(key)?.id === id) this.#remembered.delete(key)
  }

  #remember(createdKey: CreationKey, oldest: number): void {
    for (const [key, { at }] of this.#remembered) {
      if (Date.parse(at) > oldest) break
      this.#remembered.delete(key)
    }
    const { key, at } = createdKey
    const knownKey = this.#remembered.get(key)
    if (Date.parse(at) <= oldest || (knownKey && knownKey.at > at)) return
    this.#remembered.delete(key)
    this.#remembered.set(key, createdKey)
  }
}
