/** What is looked for in a text, made ready once for any number of texts, and what follows from the lengths of it. */
import { PatternAutomaton } from './pattern-automaton.ts'
import type { SecretPatterns } from './secret-patterns.ts'
import { foldEncoded, foldSpelled } from './secret-patterns.ts'

export const LINE_FEED = 0x0a
export const CARRIAGE_RETURN = 0x0d

/** What a unit of text is to the secrets: none begins with it; one does, or may; or it must be read with care. */
export const DULL = 0
export const PROMISING = 1
export const SPECIAL = 2

const INTRODUCERS = new Set(Array.from(`\\%'\r\n`, (character) => character.charCodeAt(0)))

export class SecretAutomata {
  readonly spelled: PatternAutomaton
  readonly encoded: PatternAutomaton
  /** By unit, below 256. */
  readonly kinds: Uint8Array
  /** Of all other units. */
  readonly otherKind: number
  /** Whether there is more in it than ASCII. */
  readonly isWide: boolean
  /** Whether a secret goes on after a line break. */
  readonly spansLines: boolean
  /** Bytes of the longest secret, less one: about the last ones of a text it cannot be said whether they begin one. */
  readonly undecided: number
  /** Units. A shorter text holds no secret. */
  readonly shortest: number

  constructor({ spelled, encoded }: SecretPatterns) {
    const lengths = [...spelled, ...encoded].map(({ bytes }) => bytes.length)
    this.spelled = new PatternAutomaton(spelled, foldSpelled)
    this.encoded = new PatternAutomaton(encoded, foldEncoded)
    this.isWide = spelled.some(({ bytes }) => bytes.some((byte) => byte > 0x7f))
    this.spansLines = this.spelled.contains(LINE_FEED)
    this.undecided = lengths.reduce((longest, length) => Math.max(longest, length), 1) - 1
    // A unit is at most three bytes.
    this.shortest = lengths.reduce((least, length) => Math.min(least, length), Infinity) / (this.isWide ? 3 : 1)
    this.otherKind = this.isWide ? SPECIAL : DULL
    this.kinds = Uint8Array.from({ length: 256 }, (_, byte) => this.#kindOf(byte))
  }

  #kindOf(byte: number): number {
    if (INTRODUCERS.has(byte)) return SPECIAL
    if (byte > 0x7f) return this.otherKind
    return this.spelled.begins(byte) || this.encoded.begins(byte) ? PROMISING : DULL
  }
}
