/** Waits for free file descriptors: idle shells are closed while they are short. */
import { setTimeout as delay } from 'node:timers/promises'
import { Problem } from '../contract/problem.ts'
import { codeOf, isOutOfDescriptors } from '../lib/error-code.ts'

/** Longer than it takes until idle shells are closed; in milliseconds. */
const WAIT_MS = 20_000
const RETRY_MS = 250

/**
 * Repeats the work while it fails because no descriptor is free, until `isOver`, and for a bounded time. Then throws a
 * `Problem`. The work must be able to continue where it failed.
 */
export async function waitForDescriptors<T>(
  work: () => T | Promise<T>,
  isOver: () => boolean = () => false,
): Promise<T> {
  const end = performance.now() + WAIT_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isOutOfDescriptors(error)) throw error
      if (isOver() || performance.now() > end) throw noneFree(error)
      await delay(RETRY_MS)
    }
  }
}

const noneFree = (cause: unknown) =>
  new Problem('unavailable', `Too many files and connections are open (${codeOf(cause)}). Try again in a moment.`, {
    cause,
  })
