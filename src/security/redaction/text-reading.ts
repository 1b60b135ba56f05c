/** One way to read a text, byte by byte: what has been begun in it, and where its latest bytes are written. */
import { LongMatch } from './long-match.ts'
import type { Occurrences } from './occurrences.ts'
import type { PatternAutomaton } from './pattern-automaton.ts'
import { ROOT } from './pattern-automaton.ts'
import { MAX_PATTERN_BYTES } from './secret-patterns.ts'
import { UnitPositions } from './unit-positions.ts'

export class TextReading {
  readonly automaton: PatternAutomaton
  readonly positions: UnitPositions
  /** Where the automaton stands. */
  state = ROOT
  readonly #found: Occurrences
  #longs: LongMatch[] = []

  /** `depth`: of so many of the latest bytes it is known where they are written; at least those of the longest pattern. */
  constructor(automaton: PatternAutomaton, depth: number, found: Occurrences) {
    this.automaton = automaton
    this.positions = new UnitPositions(Math.max(depth, automaton.depth))
    this.#found = found
  }

  /** Nothing is begun, and the next byte is written at `at`. */
  begin(at: number): void {
    this.state = ROOT
    if (this.#longs.length > 0) this.#longs = []
    this.positions.reset(at)
  }

  /** Whether one is begun that the automaton does not know to its end. */
  get followsLong(): boolean {
    return this.#longs.length > 0
  }

  take(byte: number, start: number, end: number): void {
    this.positions.add(start, end)
    if (this.#longs.length > 0) this.#follow(byte, end)
    this.state = this.automaton.step(this.state, byte)
    if (this.state !== ROOT && this.automaton.hasHit(this.state)) this.report(end)
  }

  /** Something ends where the automaton stands. */
  report(end: number): void {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- called only where there is one
    const { name, length, longs } = this.automaton.hitAt(this.state)!
    const start = this.positions.startOf(length)
    this.#found.add(name, start, end, longs[0])
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
      // What it covered before is found already.
      if (verdict === 'moved') match.start = this.positions.startOf(MAX_PATTERN_BYTES)
      if (verdict !== 'over') this.#found.add(match.pattern.name, match.start, end, match.pattern)
    }
    if (isOver) this.#longs = this.#longs.filter((match) => !match.isOver)
  }
}
