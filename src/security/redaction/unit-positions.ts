/** The positions in a text of the latest bytes of a reading. Free of cost while each byte is one unit of the text. */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

export class UnitPositions {
  readonly #mask: number
  /** The positions by byte number; allocated on first use. */
  #starts: Float64Array | undefined
  #count = 0
  /** Bytes from this one on, at position `#runStart`, are consecutive, each one unit long. */
  #run = 0
  #runStart = 0

  /** The positions of the latest `depth` bytes are available. */
  constructor(depth: number) {
    this.#mask = 2 ** Math.ceil(Math.log2(depth + 1)) - 1
  }

  reset(start: number): void {
    this.#count = 0
    this.#run = 0
    this.#runStart = start
  }

  /** Adds bytes of one unit each. */
  advance(bytes: number): void {
    this.#count += bytes
  }

  add(start: number, end: number): void {
    if (end - start === 1 && this.#runStart + (this.#count - this.#run) === start) {
      this.#count++
      return
    }
    this.#keepRun()
    this.#starts![this.#count & this.#mask] = start
    this.#run = ++this.#count
    this.#runStart = end
  }

  /** Skips units that have no bytes in this reading. */
  skip(end: number): void {
    this.#keepRun()
    this.#run = this.#count
    this.#runStart = end
  }

  /** Returns the start of the byte this many back, itself included; of the first one if there are fewer. */
  startOf(back: number): number {
    const at = Math.max(0, this.#count - back)
    return at >= this.#run ? this.#runStart + at - this.#run : this.#starts![at & this.#mask]!
  }

  #keepRun(): void {
    const starts = (this.#starts ??= new Float64Array(this.#mask + 1))
    for (let at = Math.max(this.#run, this.#count - this.#mask); at < this.#count; at++) {
      starts[at & this.#mask] = this.#runStart + at - this.#run
    }
  }
}
