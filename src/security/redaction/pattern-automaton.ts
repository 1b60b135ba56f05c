/**
 * Finds many byte sequences with one scan of a text (Aho-Corasick). All states are built from the sequences before any
 * text is read: no text can make it grow, and a byte of text has constant cost on average.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

/** A sequence of which the automaton knows the beginning; `long-match.ts` compares the rest. */
export interface LongPattern {
  readonly name: string
  readonly bytes: () => Uint8Array
}

export type Pattern = {
  readonly name: string
  readonly bytes: Uint8Array
  /** `bytes` is only the beginning of this. */
  readonly long?: LongPattern
}

/** The longest pattern that ends in a state: it covers the others. `longs` are those whose beginning ends there. */
export type PatternHit = { readonly name: string; readonly length: number; readonly longs: readonly LongPattern[] }

/** Bytes with the same number are equal for the patterns. */
export type Folding = (byte: number) => number

export const ROOT = 0

export class PatternAutomaton {
  /** The column of each byte; 0 for bytes that occur in no pattern. */
  readonly #columnOf = new Uint8Array(256)
  #columns = 1
  /** Length of the longest pattern. */
  readonly depth: number
  readonly size: number
  /**
   * The values of each state: the column that leads to it, its first child, its next sibling, and its fallback if no
   * child matches.
   */
  #via: Uint8Array
  #child: Int32Array
  #sibling: Int32Array
  readonly #fallback: Int32Array
  readonly #hits: PatternHit[] = []
  /** The index in `#hits` of the match of each state, from 1; 0 for none. */
  #hitOf: Int32Array
  readonly #dense: Int32Array
  readonly #denseStates: number

  /** The `denseStates` states nearest to the root have a row for all bytes: a step from there takes constant time. */
  constructor(patterns: readonly Pattern[], fold: Folding, denseStates: number) {
    const bytes = 1 + patterns.reduce((sum, pattern) => sum + pattern.bytes.length, 0)
    this.depth = patterns.reduce((longest, pattern) => Math.max(longest, pattern.bytes.length), 0)
    this.#via = new Uint8Array(bytes)
    this.#child = new Int32Array(bytes)
    this.#sibling = new Int32Array(bytes)
    this.#hitOf = new Int32Array(bytes)
    this.#assignColumns(patterns, fold)
    let size = 1
    for (const pattern of patterns) size = this.#plant(pattern, size)
    this.size = size
    this.#orderByBreadth()
    this.#fallback = new Int32Array(size)
    this.#denseStates = Math.min(size, denseStates)
    this.#dense = new Int32Array(this.#denseStates * this.#columns)
    this.#link()
  }

  /** Calls `mark` with the first two bytes of every pattern, in each form that folding allows. */
  eachBeginning(mark: (first: number, second: number) => void): void {
    const bytesBy = Map.groupBy(this.#columnOf.keys(), (byte) => this.#columnOf[byte]!)
    const children = (state: number) => {
      const all: number[] = []
      for (let child = this.#child[state]!; child !== 0; child = this.#sibling[child]!) all.push(child)
      return all
    }
    const bytesTo = (state: number) => bytesBy.get(this.#via[state]!) ?? []
    for (const one of children(ROOT)) {
      const seconds = children(one).flatMap(bytesTo)
      for (const first of bytesTo(one)) for (const second of seconds) mark(first, second)
    }
  }

  contains(byte: number): boolean {
    return this.#columnOf[byte] !== 0
  }

  areSame(one: number, other: number): boolean {
    return one === other || (this.#columnOf[one] === this.#columnOf[other] && this.#columnOf[one] !== 0)
  }

  step(state: number, byte: number): number {
    const column = this.#columnOf[byte]!
    if (column === 0) return ROOT
    return state < this.#denseStates ? this.#dense[state * this.#columns + column]! : this.#stepFar(state, column)
  }

  hasHit(state: number): boolean {
    return this.#hitOf[state] !== 0
  }

  hitAt(state: number): PatternHit | undefined {
    return this.#hits[this.#hitOf[state]! - 1]
  }

  #stepFar(state: number, column: number): number {
    for (let at = state; ; at = this.#fallback[at]!) {
      if (at < this.#denseStates) return this.#dense[at * this.#columns + column]!
      const child = this.#childOf(at, column)
      if (child !== 0) return child
    }
  }

  #childOf(state: number, column: number): number {
    let child = this.#child[state]!
    while (child !== 0 && this.#via[child] !== column) child = this.#sibling[child]!
    return child
  }

  #assignColumns(patterns: readonly Pattern[], fold: Folding): void {
    const usedBytes = new Uint8Array(256)
    for (const { bytes } of patterns) for (const byte of bytes) usedBytes[fold(byte)] = 1
    const columns = new Uint8Array(256)
    for (let byte = 0; byte < 256; byte++) if (usedBytes[byte] === 1) columns[byte] = this.#columns++
    for (let byte = 0; byte < 256; byte++) this.#columnOf[byte] = columns[fold(byte)]!
  }

  #plant({ name, bytes, long }: Pattern, size: number): number {
    let state = ROOT
    let next = size
    for (const byte of bytes) {
      const column = this.#columnOf[byte]!
      const knownChild = this.#childOf(state, column)
      if (knownChild === 0) {
        this.#via[next] = column
        this.#sibling[next] = this.#child[state]!
        this.#child[state] = next
        state = next++
      } else state = knownChild
    }
    const there = this.hitAt(state)
    const longs = long ? [...(there?.longs ?? []), long] : (there?.longs ?? [])
    this.#setHit(state, { name: there?.name ?? name, length: bytes.length, longs })
    return next
  }

  #setHit(state: number, patternHit: PatternHit): void {
    this.#hitOf[state] = this.#hits.push(patternHit)
  }

  /** Renumbers the states by their distance from the root. */
  #orderByBreadth(): void {
    const order = new Int32Array(this.size)
    const place = new Int32Array(this.size)
    for (let at = 0, end = 1; at < end; at++) {
      for (let child = this.#child[order[at]!]!; child !== 0; child = this.#sibling[child]!) {
        place[child] = end
        order[end++] = child
      }
    }
    const [via, child, sibling, hitOf] = [this.#via, this.#child, this.#sibling, this.#hitOf]
    this.#via = Uint8Array.from(order, (state) => via[state]!)
    this.#child = Int32Array.from(order, (state) => place[child[state]!]!)
    this.#sibling = Int32Array.from(order, (state) => place[sibling[state]!]!)
    this.#hitOf = Int32Array.from(order, (state) => hitOf[state]!)
  }

  /** Links the states in breadth-first order, so that a state's fallback is complete before it. */
  #link(): void {
    for (let state = ROOT; state < this.size; state++) {
      const fallback = this.#fallback[state]!
      this.#inheritHit(state, fallback)
      if (state < this.#denseStates) this.#copyRow(fallback, state)
      for (let child = this.#child[state]!; child !== 0; child = this.#sibling[child]!) {
        const column = this.#via[child]!
        if (state !== ROOT) this.#fallback[child] = this.#stepFar(fallback, column)
        if (state < this.#denseStates) this.#dense[state * this.#columns + column] = child
      }
    }
  }

  #copyRow(from: number, to: number): void {
    this.#dense.copyWithin(to * this.#columns, from * this.#columns, (from + 1) * this.#columns)
  }

  #inheritHit(state: number, fallback: number): void {
    const [own, shorter] = [this.hitAt(state), this.hitAt(fallback)]
    if (!own) this.#hitOf[state] = this.#hitOf[fallback]!
    else if (shorter && shorter.longs.length > 0 && own.longs.length === 0)
      this.#setHit(state, { ...own, longs: shorter.longs })
  }
}
