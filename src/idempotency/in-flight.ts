/**
 * Tracks which `Idempotency-Key`s have a request in progress: a second request is refused until the first is answered.
 */
import { Problem } from '../contract/problem.ts'
import { Slots } from '../lib/slots.ts'

export type InFlight = <T>(key: string, work: () => Promise<T>) => Promise<T>

/** Throws a `Problem` while another request with the same key is in progress. */
export function createInFlight(): InFlight {
  const slots = new Slots({ perKey: 1 })
  return async (key, work) => {
    const release = slots.take(key)
    if (!release) {
      throw keyInFlight()
    }
    try {
      return await work()
    } finally {
      release()
    }
  }
}

export const keyInFlight = (details?: Record<string, unknown>) =>
  new Problem(
    'idempotency_in_flight',
    'A request with this Idempotency-Key or client_message_id is in progress; wait for its response.',
    details && { details },
  )
