/** Sorts long lists without blocking the event loop. */
import type { Slices } from '../../lib/time-slices.ts'

/** Items that are sorted before others get a turn. */
const RUN = 1024
/** Items that are merged before others get a turn. */
const BATCH = 256

/** Returns the items in order; equal ones keep theirs. */
export async function sortInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  slices: Slices,
): Promise<readonly T[]> {
  let runs: (readonly T[])[] = []
  for (let start = 0; start < items.length; start += RUN) {
    await slices.rest()
    runs.push(items.slice(start, start + RUN).sort(compare))
  }
  while (runs.length > 1) {
    const longerRuns: (readonly T[])[] = []
    for (let at = 0; at < runs.length; at += 2)
      longerRuns.push(await merge(runs[at] ?? [], runs[at + 1], compare, slices))
    runs = longerRuns
  }
  return runs[0] ?? []
}

async function merge<T>(
  one: readonly T[],
  other: readonly T[] | undefined,
  compare: (a: T, b: T) => number,
  slices: Slices,
): Promise<readonly T[]> {
  if (!other) return one
  const mergedItems: T[] = []
  let at = 0
  for (const item of other) {
    for (let next = one[at]; at < one.length && next !== undefined && compare(next, item) <= 0; next = one[++at]) {
      mergedItems.push(next)
      if (mergedItems.length % BATCH === 0) await slices.rest()
    }
    mergedItems.push(item)
    if (mergedItems.length % BATCH === 0) await slices.rest()
  }
  for (; at < one.length; at += BATCH) {
    await slices.rest()
    mergedItems.push(...one.slice(at, at + BATCH))
  }
  return mergedItems
}
