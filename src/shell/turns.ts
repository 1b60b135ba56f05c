/** Runs one piece of work after the other, in the order they were asked for. */

/** Work that fails fails its own caller only. */
export type InTurn = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/**
 * The first turn comes when `after` has settled. Work whose `signal` is aborted while it waits is called at once, out
 * of turn, to say so: it has to look at its signal first.
 */
export function createTurns(after: Promise<unknown> = Promise.resolve()): InTurn {
  let last: Promise<unknown> = after.catch(() => {})
  return async (work, signal) => {
    const previous = last
    const { promise: done, resolve: finish } = Promise.withResolvers<void>()
    last = previous.then(() => done)
    try {
      await (signal ? untilAborted(previous, signal) : previous)
      return await work()
    } finally {
      finish()
    }
  }
}

async function untilAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  await Promise.race([promise, aborted])
  signal.removeEventListener('abort', onAbort)
}
