/** Where in a text the latest bytes of a reading of it are written. Costs nothing where each byte is one unit of the text. */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

export class UnitPositions {
  readonly #mask: number
  /** By number of the byte; made when it is first needed. */
  #starts: Float64Array | undefined
  #count = 0
  /** From this byte on, which is written at `#runStart`, one follows the other, each one unit long. */
  #run = 0
  #runStart = 0

  /** The latest `depth` bytes can be asked for. */
  constructor(depth: number) {
    this.#mask = 2 ** Math.ceil(Math.log2(depth + 1)) - 1
  }

  reset(start: number): void {
    this.#count = 0
    this.#run = 0
    this.#runStart = start
  }

  /** Bytes of one unit each, behind what came before. */
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

  /** Units that are no bytes of this reading. */
  skip(end: number): void {
    this.#keepRun()
    this.#run = this.#count
    this.#runStart = end
  }

  /** Of the byte that so many were read after, itself counted; of the first one where there are fewer. */
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
