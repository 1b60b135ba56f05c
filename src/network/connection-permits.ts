/** Limits how many connections sandboxes may have through the server: per conversation, and in total. */
import { Slots } from '../lib/slots.ts'

export interface ConnectionPermits {
  /** Returns an idempotent release function; undefined if there are too many. */
  take(): (() => void) | undefined
}

const MAX_CONNECTIONS = 256
/** Each uses two descriptors, of which the server's other work needs some too. */
const MAX_CONNECTIONS_OF_ALL = 4096

/** Returns a function that creates the permits of one conversation. */
export function createConnectionPermits(
  ofEach = MAX_CONNECTIONS,
  ofAll = MAX_CONNECTIONS_OF_ALL,
): () => ConnectionPermits {
  const slots = new Slots({ limit: ofAll, perKey: ofEach })
  let conversations = 0
  return () => {
    const key = String(++conversations)
    return { take: () => slots.take(key) }
  }
}
