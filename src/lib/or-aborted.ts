/** Waiting for what may not heed its signal. */

/**
 * Settles as the work does, or rejects with the signal's reason as soon as that is aborted. What the work gives after that
 * goes to `discard`, and what it throws to nobody.
 */
export async function orAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => void = () => {},
): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  let isOver = false
  work.then(
    (result) => isOver && discard(result),
    () => {}, // thrown by the race, or of no interest any more
  )
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    isOver = true
    signal.removeEventListener('abort', onAbort)
  }
}
