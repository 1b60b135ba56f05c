/** Creates that come with an `Idempotency-Key`: which are under way, and which conversations that are gone had one. */
import type { Idempotency, KeptKey } from './idempotency.ts'
import { KEY_LIFETIME_MS, findEarlier } from './idempotency.ts'
import { createInFlight } from './in-flight.ts'

/** Which conversation a key made; `at` is when, RFC 3339. */
export type CreatedKey = KeptKey & { readonly id: string; readonly at: string }

export type KeyedCreates = {
  /** Makes it, or answers with what the same request made before. Throws a `Problem` for another body, and while it is being made. */
  readonly once: <T>(idempotency: Idempotency, steps: Steps<T>) => Promise<T>
  /** Of a conversation that was deleted: a request that comes late must not make it again. */
  readonly remember: (key: CreatedKey) => void
}

type Steps<T> = {
  /** Of the conversations there are. */
  readonly known: Iterable<CreatedKey>
  readonly make: () => Promise<T>
  readonly again: (id: string) => Promise<T>
}

export function createKeyedCreates(): KeyedCreates {
  const inFlight = createInFlight()
  let gone: CreatedKey[] = []

  return {
    async once(idempotency, { known, make, again }) {
      const same = [...known, ...gone].filter(({ key }) => key === idempotency.key)
      const earlier = findEarlier(same, idempotency, Date.now())
      if (earlier) return await again(earlier.id)
      return await inFlight(idempotency.key, make)
    },
    remember(key) {
      const oldest = Date.now() - KEY_LIFETIME_MS
      gone = [...gone.filter(({ at }) => Date.parse(at) > oldest), key]
    },
  }
}
