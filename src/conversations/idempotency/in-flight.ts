/** Which `Idempotency-Key`s have a request under way: a second one is refused until the first is answered. */
import { Problem } from '../../contract/problem.ts'

export type InFlight = <T>(key: string, work: () => Promise<T>) => Promise<T>

/** Throws a `Problem` while work of the same key goes on. */
export function createInFlight(): InFlight {
  const underWay = new Set<string>()
  return async (key, work) => {
    if (underWay.has(key)) {
      throw new Problem(
        'idempotency_in_flight',
        'A request with this Idempotency-Key is under way; wait for its answer.',
      )
    }
    underWay.add(key)
    try {
      return await work()
    } finally {
      underWay.delete(key)
    }
  }
}
