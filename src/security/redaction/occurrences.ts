/** The places of a text to redact, as they are found; of overlapping ones, the fewest that cover them. */

export type Occurrence = {
  name: string
  start: number
  end: number
  /** Occurrences with the same value are one secret, found a little longer each time. */
  of: object | undefined
}

export class Occurrences {
  #list: Occurrence[] = []
  /** The text before this position is written. */
  #done = -1

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  /**
   * Keeps only few of many overlapping ones: a text of one repeated character could otherwise have as many as its
   * length.
   */
  add(name: string, start: number, end: number, of?: object): void {
    const list = this.#list
    const latest = list[list.length - 1]
    if (latest && start >= latest.start && end <= latest.end) return
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the list is not empty
    while (list.length > 0 && start <= list[list.length - 1]!.start && end >= list[list.length - 1]!.end) list.pop()
    const last = list[list.length - 1]
    const before = list[list.length - 2]
    const isAfter = last && start >= last.start && end >= last.end
    // The previous one, or the written text, together with this one covers the last one.
    const bridges = isAfter && (before ? before.start <= last.start && start <= before.end : start <= this.#done)
    if (!bridges) {
      list.push({ name, start, end, of })
      return
    }
    last.name = name
    last.start = start
    last.end = end
    last.of = of
  }

  /** The end of the last of them. */
  get end(): number {
    return this.#list.reduce((latest, { end }) => Math.max(latest, end), 0)
  }

  clear(): void {
    this.#list = []
    this.#done = -1
  }

  /** Sorted by start, the longest first. */
  sorted(): readonly Occurrence[] {
    return this.#list.sort((a, b) => a.start - b.start || b.end - a.end)
  }

  /**
   * The text before `upTo` is written: removes occurrences that end there, and of those that began there, keeps the
   * longest.
   */
  forget(upTo: number): void {
    this.#done = upTo
    if (this.#list.length === 0) return
    const remainingOccurrences = this.#list.filter(({ end }) => end > upTo)
    const begunOccurrences = remainingOccurrences
      .filter(({ start }) => start <= upTo)
      .sort((a, b) => b.end - a.end || a.start - b.start)
    this.#list = [...begunOccurrences.slice(0, 1), ...remainingOccurrences.filter(({ start }) => start > upTo)]
  }
}
