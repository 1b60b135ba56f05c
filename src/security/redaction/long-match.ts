/** Follows a secret that is longer than the automaton's patterns, from the place where its beginning was found. */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */
import type { LongPattern, PatternAutomaton } from './pattern-automaton.ts'

/** Cached per pattern: for each length, the longest beginning that is also a suffix of it. */
type PreparedPattern = { readonly bytes: Uint8Array; readonly borders: Int32Array }
const preparedPatterns = new WeakMap<LongPattern, PreparedPattern>()

/** `grown`: matches the next byte of the secret; `moved`: the match began later; or neither. */
export type MatchState = 'grown' | 'moved' | 'over'

export class LongMatch {
  readonly pattern: LongPattern
  /** The position in the text at which the match begins. */
  start: number
  isOver = false
  readonly #least: number
  readonly #bytes: Uint8Array
  readonly #borders: Int32Array
  #matched: number

  /**
   * The first `least` bytes were found, and the match lasts as long as at least that much of the beginning matches the
   * last bytes read.
   */
  constructor(pattern: LongPattern, least: number, start: number) {
    const { bytes, borders } = prepare(pattern)
    this.pattern = pattern
    this.start = start
    this.#least = least
    this.#bytes = bytes
    this.#borders = borders
    this.#matched = least
  }

  take(byte: number, bytes: Pick<PatternAutomaton, 'areSame'>): MatchState {
    let verdict: 'grown' | 'moved' = 'grown'
    while (this.#matched === this.#bytes.length || !bytes.areSame(this.#bytes[this.#matched]!, byte)) {
      this.#matched = this.#borders[this.#matched]!
      verdict = 'moved'
      if (this.#matched < this.#least) {
        this.isOver = true
        return 'over'
      }
    }
    this.#matched++
    return verdict
  }
}

function prepare(pattern: LongPattern): PreparedPattern {
  const knownPattern = preparedPatterns.get(pattern)
  if (knownPattern) return knownPattern
  const bytes = pattern.bytes()
  const preparedPattern = { bytes, borders: bordersOf(bytes) }
  preparedPatterns.set(pattern, preparedPattern)
  return preparedPattern
}

/** The failure function of Knuth, Morris and Pratt. */
function bordersOf(bytes: Uint8Array): Int32Array {
  const borders = new Int32Array(bytes.length + 1)
  for (let length = 2, border = 0; length <= bytes.length; length++) {
    const last = bytes[length - 1]
    while (border > 0 && bytes[border] !== last) border = borders[border]!
    if (bytes[border] === last) border++
    borders[length] = border
  }
  return borders
}
