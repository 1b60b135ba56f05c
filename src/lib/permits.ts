/** Lets only so much work go on at a time; the rest waits, in the order it came. */

/** Work whose `signal` is aborted while it waits is not begun: the reason of the abort is thrown. */
export type Permits = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

export function createPermits(count: number): Permits {
  // A set keeps the order of arrival, and whoever gives up leaves it at once.
  const waiting = new Set<() => void>()
  let free = count

  const release = () => {
    const [next] = waiting
    if (next) next()
    else free++
  }

  async function acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (free > 0) return void free--
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const give = () => {
      waiting.delete(give)
      resolve()
    }
    const giveUp = () => {
      // The permit may have been handed over in this very turn.
      if (waiting.delete(give)) reject(signal!.reason as Error)
    }
    waiting.add(give)
    signal?.addEventListener('abort', giveUp)
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', giveUp)
    }
  }

  return async (work, signal) => {
    await acquire(signal)
    try {
      return await work()
    } finally {
      release()
    }
  }
}
