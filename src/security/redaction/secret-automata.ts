/** The search structures for a set of secrets, built once for any number of texts, and the lengths derived from it. */
import { PatternAutomaton } from './pattern-automaton.ts'
import type { SecretPatterns } from './secret-patterns.ts'
import { foldEncoded, foldSpelled } from './secret-patterns.ts'

export const LINE_FEED = 0x0a
export const CARRIAGE_RETURN = 0x0d

/** Units that may begin an escape, or end what has begun: they are processed on the slow path. */
const SPECIAL = Array.from(`\\%'\r\n`, (character) => character.charCodeAt(0))

export const ASCII = 128

/** Most text never gets beyond these. */
const DENSE_STATES = 128
/** The number covers all states for server keys, provided that they are no longer than keys are. */
const EVEN_DENSE_STATES = 4096

export class SecretAutomata {
  /**
   * True if each unit of a text takes equally long: possible beginnings of a secret are not skipped faster than others.
   * Set for keys that an agent must not learn, because the time for its text would otherwise reveal how they begin.
   */
  readonly isEven: boolean
  readonly spelled: PatternAutomaton
  readonly encoded: PatternAutomaton
  /** The value of a unit is 1 if it is on the slow path. */
  readonly isSpecial = new Uint8Array(256)
  /** The value of two consecutive ASCII units is 1 if a pattern may begin with them, or the first one is special. */
  readonly mayBegin = new Uint8Array(ASCII * ASCII)
  /** True if a secret has non-ASCII characters. */
  readonly isWide: boolean
  /** True if a secret continues after a line break. */
  readonly spansLines: boolean
  /** Bytes of the longest secret, minus one: the last bytes of a text, which may begin one. */
  readonly undecided: number
  /** The length of the shortest secret in units. A shorter text contains no secret. */
  readonly shortest: number

  constructor({ spelled, encoded }: SecretPatterns, isEven: boolean) {
    const lengths = [...spelled, ...encoded].map(({ bytes }) => bytes.length)
    const denseStates = isEven ? EVEN_DENSE_STATES : DENSE_STATES
    this.isEven = isEven
    this.spelled = new PatternAutomaton(spelled, foldSpelled, denseStates)
    this.encoded = new PatternAutomaton(encoded, foldEncoded, denseStates)
    this.isWide = spelled.some(({ bytes }) => bytes.some((byte) => byte > 0x7f))
    this.spansLines = this.spelled.contains(LINE_FEED)
    this.undecided = lengths.reduce((longest, length) => Math.max(longest, length), 1) - 1
    // A unit is at most three bytes.
    this.shortest = lengths.reduce((least, length) => Math.min(least, length), Infinity) / (this.isWide ? 3 : 1)
    for (const unit of SPECIAL) this.isSpecial[unit] = 1
    if (this.isWide) this.isSpecial.fill(1, ASCII)
    this.#markBeginnings()
  }

  #markBeginnings(): void {
    const mark = (first: number, second: number) => {
      if (first < ASCII && second < ASCII) this.mayBegin[first * ASCII + second] = 1
      // A special unit may be the second one in another form, or be between the two.
      if (first < ASCII) for (const unit of SPECIAL) this.mayBegin[first * ASCII + unit] = 1
    }
    this.spelled.eachBeginning(mark)
    this.encoded.eachBeginning(mark)
    for (const unit of SPECIAL) this.mayBegin.fill(1, unit * ASCII, (unit + 1) * ASCII)
  }
}
