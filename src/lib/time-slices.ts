/** Long work on the event loop, cut into slices: between two of them everybody else has a turn. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long the loop may be kept at a time, milliseconds. */
const SLICE_MS = 20

/** Asked between the steps of the work; waits for a turn of the loop when a slice is over. */
export type Slices = { readonly rest: () => Promise<void> | undefined }

/**
 * Awaiting promises alone gives nobody a turn: they are all settled before the loop goes on. So work that reads what is
 * in memory already has to ask for it.
 */
export function createSlices(): Slices {
  let began = performance.now()
  return {
    rest() {
      if (performance.now() - began < SLICE_MS) return undefined
      return nextTurn().then(() => void (began = performance.now()))
    },
  }
}
