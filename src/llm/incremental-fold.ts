/** Folds a list that only grows, from where the last fold of it ended: what is asked again and again costs what is new. */

/** `add` takes the items in order, each once for each list. The value of another list, or of one that shrank, begins anew. */
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
