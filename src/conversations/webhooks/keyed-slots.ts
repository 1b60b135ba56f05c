/** How much may be under way at once, in all and of one key: a key that has used up its share waits, the others do not. */

/** Throws what the work throws, or the reason of a signal that is aborted while it waits. */
export type KeyedSlots = <T>(key: string, work: () => Promise<T>, signal: AbortSignal) => Promise<T>

export function createKeyedSlots({ total, perKey }: { total: number; perKey: number }): KeyedSlots {
  const underWay = new Map<string, number>()
  const waiting = new Map<string, Set<() => void>>()
  let all = 0

  const hasRoom = (key: string) => all < total && (underWay.get(key) ?? 0) < perKey
  const enter = (key: string) => {
    all++
    underWay.set(key, (underWay.get(key) ?? 0) + 1)
  }
  const leave = (key: string) => {
    all--
    const left = underWay.get(key)! - 1
    if (left > 0) underWay.set(key, left)
    else underWay.delete(key)
    admitOne()
  }
  const admitOne = () => {
    for (const [key, queue] of waiting) {
      if (!hasRoom(key)) continue
      const [next] = queue
      queue.delete(next!)
      // To the back: the keys take turns.
      waiting.delete(key)
      if (queue.size > 0) waiting.set(key, queue)
      enter(key)
      return next!()
    }
  }
  const untilAdmitted = async (key: string, signal: AbortSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const queue = waiting.get(key) ?? new Set()
    waiting.set(key, queue.add(resolve))
    const onAbort = () => {
      // Not there any more: it was admitted in this very moment, and the work looks at its signal itself.
      if (!queue.delete(resolve)) return
      if (queue.size === 0 && waiting.get(key) === queue) waiting.delete(key)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  return async (key, work, signal) => {
    signal.throwIfAborted()
    // Where there is room, nobody waits for it.
    if (hasRoom(key)) enter(key)
    else await untilAdmitted(key, signal)
    try {
      return await work()
    } finally {
      leave(key)
    }
  }
}
