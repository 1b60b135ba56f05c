/** Notices that the clock was set back: a file that has changed since can then have the times at which it was seen. */
import { FINE_MS } from './tree-entry.ts'

/** Both are in milliseconds: the time of day, and what has passed since this process began. */
export type ClockReading = { readonly at: number; readonly offset?: number }

/** Clocks are often set by less. Files that are known have older times than this; see `settledStat`. */
const HARMLESS_MS = FINE_MS / 2

export const readClock = (): ClockReading & { readonly offset: number } => {
  const at = Date.now()
  return { at, offset: at - performance.now() }
}

/** `seen`: of an earlier moment, without `offset` if it is of another process. */
export function wasSetBack(seen: ClockReading): boolean {
  const { at, offset } = readClock()
  return at < seen.at || (seen.offset !== undefined && offset < seen.offset - HARMLESS_MS)
}
