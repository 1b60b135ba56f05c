/** Items kept in an order as they come and go: finding a place takes a binary search, adding at the end no search at all. */

export type Compare<T> = (a: T, b: T) => number

/** No two items may compare as equal. */
export class SortedList<T> {
  readonly #compare: Compare<T>
  #items: T[]

  constructor(compare: Compare<T>, items: Iterable<T> = []) {
    this.#compare = compare
    // Fast for what is in order already.
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
    const found = this.#items[place]
    if (found !== undefined && this.#compare(found, item) === 0) this.#items.splice(place, 1)
  }

  /** The place of the first item of which it holds; `length` when there is none. It holds of all that come after one of which it holds. */
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
