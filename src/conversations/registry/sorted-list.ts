/** A sorted list: an insertion takes a binary search, an append at the end none. */

export type Compare<T> = (a: T, b: T) => number

/** No two items may compare as equal. */
export class SortedList<T> {
  readonly #compare: Compare<T>
  #items: T[]

  constructor(compare: Compare<T>, items: Iterable<T> = []) {
    this.#compare = compare
    // This is fast for items that are already sorted.
    this.#items = [...items].sort(compare)
  }

  get length(): number {
    return this.#items.length
  }

  at(place: number): T | undefined {
    return this.#items[place]
  }

  add(item: T): void {
    const last = this.#items.at(-1)
    if (last === undefined || this.#compare(last, item) < 0) this.#items.push(item)
    else
      this.#items.splice(
        this.firstPlace((other) => this.#compare(other, item) >= 0),
        0,
        item,
      )
  }

  delete(item: T): void {
    const place = this.firstPlace((other) => this.#compare(other, item) >= 0)
    const foundItem = this.#items[place]
    if (foundItem !== undefined && this.#compare(foundItem, item) === 0) this.#items.splice(place, 1)
  }

  /**
   * Returns the index of the first item for which `holds` is true, or `length`. `holds` must be true for all later
   * items too.
   */
  firstPlace(holds: (item: T) => boolean): number {
    let [low, high] = [0, this.#items.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
      if (holds(this.#items[middle]!)) high = middle
      else low = middle + 1
    }
    return low
  }
}
