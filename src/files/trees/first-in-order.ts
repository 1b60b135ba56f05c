/**
 * Keeps the first N of items that arrive in any order. It sorts in batches: no single step is slower than one merge of
 * N items.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are checked against the lengths on the same line */

/** Items sorted at a time. */
const BATCH = 1000

export type FirstInOrder<T> = {
  readonly add: (item: T) => void
  /** Returns the first of all added items, in order. */
  readonly items: () => readonly T[]
}

export function createFirstInOrder<T>(count: number, compare: (a: T, b: T) => number): FirstInOrder<T> {
  let kept: readonly T[] = []
  let batch: T[] = []
  const sortIn = () => {
    kept = merge(kept, batch.sort(compare), count, compare)
    batch = []
  }
  return {
    add(item) {
      // An item after the last of them can never be among the first.
      if (kept.length === count && compare(item, kept.at(-1)!) > 0) return
      batch.push(item)
      if (batch.length === BATCH) sortIn()
    },
    items() {
      sortIn()
      return kept
    },
  }
}

function merge<T>(a: readonly T[], b: readonly T[], count: number, compare: (a: T, b: T) => number): T[] {
  const merged: T[] = []
  for (let [atA, atB] = [0, 0]; merged.length < count && (atA < a.length || atB < b.length);) {
    const isFromA = atB >= b.length || (atA < a.length && compare(a[atA]!, b[atB]!) <= 0)
    merged.push(isFromA ? a[atA++]! : b[atB++]!)
  }
  return merged
}
