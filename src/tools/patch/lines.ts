/** The lines of a text as an index of their beginnings: an object for each of millions of lines would take long to make. */
import type { Slices } from '../../lib/time-slices.ts'

/** One line, or several with the line ends between them. `end` is empty only for the last line of a text. */
export type Part = { readonly text: string; readonly end: string }

/** Characters that are read before other work has a turn. */
const CHARS_AT_A_TIME = 256 * 1024

const FIRST_CAPACITY = 1024

/** Lines end with `\n` or `\r\n`; text after the last line end is a line as well. */
export async function readLines(text: string, slices: Slices): Promise<Lines> {
  let starts = new Uint32Array(FIRST_CAPACITY)
  let count = 0
  let from = 0
  for (let stop = CHARS_AT_A_TIME; from < text.length; stop += CHARS_AT_A_TIME) {
    while (from < Math.min(stop, text.length)) {
      if (count === starts.length) starts = grown(starts)
      starts[count++] = from
      const end = text.indexOf('\n', from)
      from = end < 0 ? text.length : end + 1
    }
    await slices.rest()
  }
  return new Lines(text, starts.subarray(0, count))
}

function grown(starts: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * starts.length)
  larger.set(starts)
  return larger
}

export class Lines {
  readonly #text: string
  readonly #starts: Uint32Array

  constructor(text: string, starts: Uint32Array) {
    this.#text = text
    this.#starts = starts
  }

  get count(): number {
    return this.#starts.length
  }

  /** Returns the text of a line without its line end. */
  textOf(line: number): string {
    return this.#text.slice(this.#starts[line], this.#stop(line) - (this.endOf(line)?.length ?? 0))
  }

  /** Undefined if there is no such line. */
  endOf(line: number): string | undefined {
    if (line < 0 || line >= this.count) return undefined
    const stop = this.#stop(line)
    if (this.#text[stop - 1] !== '\n') return ''
    return stop - 2 >= (this.#starts[line] ?? 0) && this.#text[stop - 2] === '\r' ? '\r\n' : '\n'
  }

  /** The lines from `first` to before `end`: one part, or none if there are no lines. */
  part(first: number, end: number): Part[] {
    const lastEnd = first < end ? this.endOf(end - 1) : undefined
    if (lastEnd === undefined) return []
    return [{ text: this.#text.slice(this.#starts[first], this.#stop(end - 1) - lastEnd.length), end: lastEnd }]
  }

  #stop(line: number): number {
    return this.#starts[line + 1] ?? this.#text.length
  }
}
