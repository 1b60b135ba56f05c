/** The places of a text that are taken out of it, as they are found; of those that overlap, the fewest that cover them. */

export type Occurrence = {
  name: string
  start: number
  end: number
  /** Those with the same one are the same secret, found a little longer each time. */
  of: object | undefined
}

export class Occurrences {
  #list: Occurrence[] = []

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  /** Keeps few of many that overlap: otherwise a text of one character could hold as many as it is long. */
  add(name: string, start: number, end: number, of?: object): void {
    const last = this.#list.at(-1)
    if (last && start >= last.start && end <= last.end) return
    const before = this.#list.at(-2)
    const isCovered = last && end >= last.end && start <= last.start
    const isBridged = last && before && end >= last.end && start > before.start && start <= before.end
    if (!isCovered && !isBridged) this.#list.push({ name, start, end, of })
    else Object.assign(last, { name, start, end, of })
  }

  clear(): void {
    this.#list = []
  }

  /** By their beginning, the longest first. */
  sorted(): readonly Occurrence[] {
    return this.#list.sort((a, b) => a.start - b.start || b.end - a.end)
  }

  /** What ends there or before is done with. */
  forget(upTo: number): void {
    this.#list = this.#list.filter(({ end }) => end > upTo)
  }
}
