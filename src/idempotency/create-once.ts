/** Executes each create with a key once: also at several instances, and when it is repeated while it is executed. */
import type { Idempotency } from '../state/idempotency.ts'
import { answerOnce } from '../state/idempotency.ts'
import type { KeyClaims } from '../storage/instances.ts'
import type { CreationKey } from '../storage/storage.ts'
import { CreatedKeys } from './created-keys.ts'
import { createInFlight, keyInFlight } from './in-flight.ts'

export class CreateOnce<T> {
  readonly #claims: KeyClaims | undefined
  readonly #again: (id: string) => Promise<T>
  readonly #untilKnown: () => Promise<void>
  readonly #created = new CreatedKeys()
  readonly #inFlight = createInFlight()

  /**
   * `claims`: undefined where no other instance uses the storage. `again` returns the response of an earlier create.
   * `untilKnown` resolves when the keys of all conversations are remembered.
   */
  constructor(claims: KeyClaims | undefined, again: (id: string) => Promise<T>, untilKnown: () => Promise<void>) {
    this.#claims = claims
    this.#again = again
    this.#untilKnown = untilKnown
  }

  readonly remember = (keys: readonly CreationKey[]): void => this.#created.remember(keys)

  /** Call it after the conversations of these keys were deleted, if a repeated request creates another one. Never rejects. */
  async forget(keys: readonly CreationKey[]): Promise<void> {
    this.#created.forget(keys)
    // A key that could not be freed says that its conversation was deleted.
    for (const { key, id } of keys) await this.#claims?.freeKey({ key, id }).catch(() => {})
  }

  /** `make` creates the conversation `id`. Throws `idempotency_in_flight`, and the `Problem` of `findEarlier`. */
  async run(idempotency: Idempotency, id: string, make: () => Promise<T>): Promise<T> {
    const claims = this.#claims
    if (claims) await this.#untilKnown()
    const once = claims ? () => this.#makeForAll(claims, idempotency, id, make) : make
    return await this.#answer(idempotency, this.#created.of(idempotency.key), () =>
      this.#inFlight(idempotency.key, once),
    )
  }

  async #makeForAll(claims: KeyClaims, idempotency: Idempotency, id: string, make: () => Promise<T>): Promise<T> {
    const { key, bodyHash } = idempotency
    const earlier = await claims.claimKey({ key, bodyHash, id })
    if (earlier) {
      if (!earlier.isMade) throw keyInFlight()
      // It was made a moment ago: a repetition is forwarded there.
      const again = earlier.isElsewhere ? () => Promise.reject(keyInFlight()) : this.#again
      return await this.#answer(idempotency, [earlier], make, again)
    }
    try {
      return await make()
    } catch (error) {
      await claims.releaseKey({ key, id }).catch(() => {}) // then it ends with this instance
      throw error
    }
  }

  async #answer(
    idempotency: Idempotency,
    rememberedKeys: readonly CreationKey[],
    make: () => Promise<T>,
    again = this.#again,
  ): Promise<T> {
    return await answerOnce(idempotency, { remembered: rememberedKeys, make, again: ({ id }) => again(id) })
  }
}
