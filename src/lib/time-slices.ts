/** Splits long work on the event loop into slices: between two of them other work gets a turn. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'

/** How long the loop may be blocked at a time, in milliseconds. */
const SLICE_MS = 20

/** Called between the steps of the work; waits for a turn of the loop when a slice is over. */
export type Slices = { readonly rest: () => Promise<void> | undefined }

/**
 * Awaiting resolved promises alone does not yield: they all settle before the loop continues. So work on data in memory
 * must call this.
 */
export function createSlices(): Slices {
  let began = performance.now()
  return {
    rest() {
      if (performance.now() - began < SLICE_MS) return undefined
      return yieldToLoop().then(() => void (began = performance.now()))
    },
  }
}
