/** How many connections sandboxes may have through the server: each conversation, and all of them together. */

export interface Permits {
  /** Returns an idempotent release function; undefined when there are too many. */
  take(): (() => void) | undefined
}

const MAX_CONNECTIONS = 256
/** Each takes two descriptors, of which the server's other work needs some too. */
const MAX_CONNECTIONS_OF_ALL = 4096

/** Returns a function that makes the permits of one more conversation. */
export function createConnectionPermits(ofEach = MAX_CONNECTIONS, ofAll = MAX_CONNECTIONS_OF_ALL): () => Permits {
  let taken = 0
  return () => {
    let own = 0
    return {
      take() {
        if (own >= ofEach || taken >= ofAll) return undefined
        own++
        taken++
        let isTaken = true
        return () => {
          if (!isTaken) return
          isTaken = false
          own--
          taken--
        }
      },
    }
  }
}
