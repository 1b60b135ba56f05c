/** Runs tasks one after the other, in the order they came. */

export type Serial = <T>(task: () => Promise<T>) => Promise<T>

/** A task that fails fails for its caller only; the next one runs all the same. */
export function createSerial(): Serial {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const run = last.then(task)
    last = run.catch(() => {})
    return run
  }
}
