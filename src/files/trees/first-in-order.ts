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
  let keptItems: readonly T[] = []
  let batch: T[] = []
  const sortIn = () => {
    keptItems = merge(keptItems, batch.sort(compare), count, compare)
    batch = []
  }
  return {
    add(item) {
      // An item after the last of them can never be among the first.
      if (keptItems.length === count && compare(item, keptItems.at(-1)!) > 0) return
      batch.push(item)
      if (batch.length === BATCH) sortIn()
    },
    items() {
      sortIn()
      return keptItems
    },
  }
}

function merge<T>(a: readonly T[], b: readonly T[], count: number, compare: (a: T, b: T) => number): T[] {
  const mergedItems: T[] = []
  for (let [atA, atB] = [0, 0]; mergedItems.length < count && (atA < a.length || atB < b.length);) {
    const isFromA = atB >= b.length || (atA < a.length && compare(a[atA]!, b[atB]!) <= 0)
    mergedItems.push(isFromA ? a[atA++]! : b[atB++]!)
  }
  return mergedItems
}
