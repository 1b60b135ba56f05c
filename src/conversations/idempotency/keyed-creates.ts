/** Creates that come with an `Idempotency-Key`: which are under way, and what each key of the last day has made. */
import type { Idempotency, KeptKey } from './idempotency.ts'
import { KEY_LIFETIME_MS, findEarlier } from './idempotency.ts'
import { createInFlight } from './in-flight.ts'

/** Which conversation a key made; `at` is when, RFC 3339. */
export type CreatedKey = KeptKey & { readonly id: string; readonly at: string }

export type KeyedCreates = {
  /** Makes it, or answers with what the same request made before. Throws a `Problem` for another body, and while it is being made. */
  readonly once: <T>(idempotency: Idempotency, steps: Steps<T>) => Promise<T>
  /** For a day, also when what it made is deleted: a request that comes late must not make it again. */
  readonly remember: (key: CreatedKey) => void
}

type Steps<T> = {
  /** Those that are not remembered here. */
  readonly known?: Iterable<CreatedKey>
  readonly make: () => Promise<T>
  readonly again: (id: string) => Promise<T>
}

export function createKeyedCreates(): KeyedCreates {
  const inFlight = createInFlight()
  /** The newest of each key. Those that were remembered first come first, so the old ones are found at the beginning. */
  const remembered = new Map<string, CreatedKey>()

  return {
    async once(idempotency, { known = [], make, again }) {
      const own = remembered.get(idempotency.key)
      const earlier = findEarlier(own ? [...known, own] : [...known], idempotency, Date.now())
      if (earlier) return await again(earlier.id)
      return await inFlight(idempotency.key, make)
    },
    remember(created) {
      const oldest = Date.now() - KEY_LIFETIME_MS
      for (const [key, { at }] of remembered) {
        if (Date.parse(at) > oldest) break
        remembered.delete(key)
      }
      const { key, at } = created
      const known = remembered.get(key)
      if (Date.parse(at) <= oldest || (known && known.at > at)) return
      remembered.delete(key)
      remembered.set(key, created)
    },
  }
}
