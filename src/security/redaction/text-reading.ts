/** One reading of a text, byte by byte: what has begun in it, and the positions of its latest bytes. */
import { LongMatch } from './long-match.ts'
import type { Occurrences } from './occurrences.ts'
import type { PatternAutomaton } from './pattern-automaton.ts'
import { ROOT } from './pattern-automaton.ts'
import { MAX_PATTERN_BYTES } from './secret-patterns.ts'
import { UnitPositions } from './unit-positions.ts'

export class TextReading {
  readonly automaton: PatternAutomaton
  readonly positions: UnitPositions
  /** The automaton's current state. */
  state = ROOT
  readonly #occurrences: Occurrences
  #longs: LongMatch[] = []

  /** `depth`: the number of latest bytes whose position is known; at least the length of the longest pattern. */
  constructor(automaton: PatternAutomaton, depth: number, occurrences: Occurrences) {
    this.automaton = automaton
    this.positions = new UnitPositions(Math.max(depth, automaton.depth))
    this.#occurrences = occurrences
  }

  /** Nothing has begun, and the next byte is at position `at`. */
  begin(at: number): void {
    this.state = ROOT
    if (this.#longs.length > 0) this.#longs = []
    this.positions.reset(at)
  }

  /** True if a secret has begun that is longer than the automaton's patterns. */
  get followsLong(): boolean {
    return this.#longs.length > 0
  }

  take(byte: number, start: number, end: number): void {
    this.positions.add(start, end)
    if (this.#longs.length > 0) this.#follow(byte, end)
    this.state = this.automaton.step(this.state, byte)
    if (this.state !== ROOT && this.automaton.hasHit(this.state)) this.report(end)
  }

  /** A pattern ends in the automaton's current state. */
  report(end: number): void {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- called only where there is one
    const { name, length, longs } = this.automaton.hitAt(this.state)!
    const start = this.positions.startOf(length)
    this.#occurrences.add(name, start, end, longs[0])
    for (const long of longs) {
      if (this.#longs.some(({ pattern }) => pattern === long)) continue
      this.#longs.push(new LongMatch(long, MAX_PATTERN_BYTES, this.positions.startOf(MAX_PATTERN_BYTES)))
    }
  }

  #follow(byte: number, end: number): void {
    let isOver = false
    for (const match of this.#longs) {
      const verdict = match.take(byte, this.automaton)
      if (verdict === 'over') isOver = true
      // What it covered before has already been found.
      if (verdict === 'moved') match.start = this.positions.startOf(MAX_PATTERN_BYTES)
      if (verdict !== 'over') this.#occurrences.add(match.pattern.name, match.start, end, match.pattern)
    }
    if (isOver) this.#longs = this.#longs.filter((match) => !match.isOver)
  }
}
