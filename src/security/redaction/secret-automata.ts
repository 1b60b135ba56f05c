/** What is looked for in a text, made ready once for any number of texts, and what follows from the lengths of it. */
import { PatternAutomaton } from './pattern-automaton.ts'
import type { SecretPatterns } from './secret-patterns.ts'
import { foldEncoded, foldSpelled } from './secret-patterns.ts'

export const LINE_FEED = 0x0a
export const CARRIAGE_RETURN = 0x0d

/** Units that may begin an escape, or end what was begun: they are read with care. */
const SPECIAL = Array.from(`\\%'\r\n`, (character) => character.charCodeAt(0))

export const ASCII = 128

/** Most text never leads further. */
const DENSE_STATES = 128
/** Of server keys all states, as far as they are no longer than keys are. */
const EVEN_DENSE_STATES = 4096

export class SecretAutomata {
  /**
   * Whether each unit of a text takes as long as any other: what may begin a secret is not passed over. With keys that an
   * agent must not learn it is so, as the time that its text takes would else tell how they begin.
   */
  readonly isEven: boolean
  readonly spelled: PatternAutomaton
  readonly encoded: PatternAutomaton
  /** By unit: 1 for those that are to be read with care. */
  readonly isSpecial = new Uint8Array(256)
  /** By two units of ASCII, one behind the other: 1 where something may begin with them, or the first one is special. */
  readonly mayBegin = new Uint8Array(ASCII * ASCII)
  /** Whether there is more in it than ASCII. */
  readonly isWide: boolean
  /** Whether a secret goes on after a line break. */
  readonly spansLines: boolean
  /** Bytes of the longest secret, less one: about the last ones of a text it cannot be said whether they begin one. */
  readonly undecided: number
  /** Units. A shorter text holds no secret. */
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
      // What is special may be the second one in another form, or stand between the two.
      if (first < ASCII) for (const unit of SPECIAL) this.mayBegin[first * ASCII + unit] = 1
    }
    this.spelled.eachBeginning(mark)
    this.encoded.eachBeginning(mark)
    for (const unit of SPECIAL) this.mayBegin.fill(1, unit * ASCII, (unit + 1) * ASCII)
  }
}
