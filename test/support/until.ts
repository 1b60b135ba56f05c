/** Waits for a condition, also outside of a test and in tests that run at the same time, where `expect.poll` does not work. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PATIENCE_MS } from './patience.ts'

const INTERVAL_MS = 20

/** Resolves to the first value that is not `false` or undefined. Throws, with what was awaited, when it takes too long. */
export async function until<T>(what: string, look: () => Promise<T | false | undefined>): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (found !== false && found !== undefined) return found
    if (Date.now() > deadline) throw new Error(`it took too long: ${what}`)
    // oxlint-disable-next-line tests/sleep -- the interval of all polls
    await sleep(INTERVAL_MS)
  }
}
