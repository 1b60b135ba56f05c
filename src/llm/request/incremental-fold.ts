/** Folds a list that only grows, continuing where the last fold ended: repeated calls only process new items. */

/**
 * `add` receives the items in order, each once per list. The fold starts over for another list, or one that became
 * shorter.
 */
export function createIncrementalFold<T, S>(begin: () => S, add: (value: S, item: T) => S): (items: readonly T[]) => S {
  let known: readonly T[] | undefined
  let count = 0
  let value = begin()
  return (items) => {
    if (items !== known || items.length < count) {
      known = items
      count = 0
      value = begin()
    }
    for (const item of items.slice(count)) value = add(value, item)
    count = items.length
    return value
  }
}
