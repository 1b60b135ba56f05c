/**
 * Scans a text for secrets, piece by piece: as it is, with decoded escapes, and for base64 in it. How much of the text
 * it keeps, and how much of the end is undecided, depends on the lengths of the secrets and on the text. It never
 * depends on whether the text resembles a secret.
 */
/* oxlint-disable typescript/no-non-null-assertion -- there is one reading for each level of escapes, and one of the plain text */
import { EscapeDecoder, utf8 } from './escape-decoder.ts'
import type { Occurrences } from './occurrences.ts'
import { ROOT } from './pattern-automaton.ts'
import type { SecretAutomata } from './secret-automata.ts'
import { ASCII, CARRIAGE_RETURN, LINE_FEED } from './secret-automata.ts'
import { ESCAPE_LEVELS } from './secret-patterns.ts'
import { TextReading } from './text-reading.ts'

/** The units of text: UTF-16 units, or the bytes of UTF-8 (each as the character of that number). */
export type TextUnit = 'char' | 'byte'

/** Wrapped base64 continues after a line break only after this many characters: programs write 60 to 76 per line. */
const MIN_WRAPPED_CHARS = 48
/** Consecutive line breaks that base64 may contain. */
const MAX_LINE_BREAKS = 4
/** What decides whether base64 continues after a line break. */
const TAIL_CHARS = MIN_WRAPPED_CHARS + MAX_LINE_BREAKS

const REPLACEMENT = 0xfffd
/** Occurs in no secret. */
const NO_BYTE = 0xff

export class SecretScanner {
  readonly #automata: SecretAutomata
  readonly #unit: TextUnit
  /** One without decoding, and one per decoded level of escapes. */
  readonly #spelled: readonly TextReading[]
  /** Reads the last of these levels. */
  readonly #encoded: TextReading
  readonly #readings: readonly TextReading[]
  /** Each decoder leads from one reading to the next one. */
  readonly #decoders: readonly EscapeDecoder[]
  /** Position of the next unit. */
  #at = 0
  /** Everything that begins before is decided. */
  #floor = 0
  /** The high surrogate at the end of the last piece; 0 for none. */
  #half = 0
  /** The end of all pieces before: whether a line continues base64 must not depend on where a piece ends. */
  #tail = ''
  #lineBreaks = 0

  /** Adds matches to `found`, with positions in units from the start. */
  constructor(automata: SecretAutomata, unit: TextUnit, occurrences: Occurrences) {
    const { spelled, encoded, undecided } = automata
    this.#automata = automata
    this.#unit = unit
    this.#spelled = ['plain', ...ESCAPE_LEVELS].map(() => new TextReading(spelled, undecided, occurrences))
    this.#encoded = new TextReading(encoded, undecided, occurrences)
    this.#readings = [...this.#spelled, this.#encoded]
    this.#decoders = ESCAPE_LEVELS.map(
      (kind, level) =>
        new EscapeDecoder(kind, { take: (byte, start, end) => this.#takeByte(level + 1, byte, start, end) }),
    )
  }

  /** Begins another text, or a part of it, at position `at`. */
  begin(at: number): void {
    for (const reading of this.#readings) reading.begin(at)
    for (const decoder of this.#decoders) decoder.reset()
    this.#at = at
    this.#floor = at
    this.#half = 0
    this.#tail = ''
    this.#lineBreaks = 0
  }

  /** Every secret that begins before this position has been found. */
  get settled(): number {
    const { undecided } = this.#automata
    const readUpTo = this.#spelled.at(-1)!.positions.startOf(undecided)
    return Math.max(this.#floor, Math.min(readUpTo, this.#encoded.positions.startOf(undecided)))
  }

  scan(text: string): void {
    const begin = this.#at
    for (let at = 0; at < text.length; at++) {
      if (this.#isInStep) at = this.#scanInStep(text, at, begin)
      if (at >= text.length) break
      const unit = text.charCodeAt(at)
      if (unit === LINE_FEED) this.#takeLineFeed(text, at, begin)
      else this.#takeUnit(unit, begin + at)
    }
    this.#at = begin + text.length
    this.#tail = (text.length < TAIL_CHARS ? this.#tail + text : text).slice(-TAIL_CHARS)
  }

  /** The text has ended: a pending escape is not one. */
  finish(): void {
    this.#endHalf(this.#at)
    for (const decoder of this.#decoders) decoder.flush(this.#at)
  }

  /** True if no escape is pending, and all readings see the same bytes. */
  get #isInStep(): boolean {
    for (const decoder of this.#decoders) if (!decoder.isIdle) return false
    const { state } = this.#spelled[0]!
    for (const reading of this.#spelled) if (reading.state !== state || reading.followsLong) return false
    return this.#half === 0 && !this.#encoded.followsLong
  }

  /**
   * Scans while each unit is one byte and begins no escape, which is most text; returns the position of the first other
   * unit.
   */
  #scanInStep(text: string, from: number, begin: number): number {
    const { spelled, encoded, isSpecial, isWide, isEven } = this.#automata
    let word = this.#spelled[0]!.state
    let code = this.#encoded.state
    for (let at = from; at < text.length; at++) {
      if (word === ROOT && code === ROOT && !isEven) at = this.#skip(text, at)
      const unit = text.charCodeAt(at)
      if (unit < 256 ? isSpecial[unit] === 1 : isWide) {
        this.#advance(word, code, at - from)
        return at
      }
      const byte = unit < 256 ? unit : NO_BYTE
      word = spelled.step(word, byte)
      code = encoded.step(code, byte)
      if (!spelled.hasHit(word) && !encoded.hasHit(code)) continue
      this.#advance(word, code, at + 1 - from)
      this.#report(begin + at + 1)
      return at + 1
    }
    this.#advance(word, code, text.length - from)
    return text.length
  }

  /**
   * Returns the first unit from `from` on that may begin something. Most text is scanned here, with one lookup per
   * unit.
   */
  #skip(text: string, from: number): number {
    const { mayBegin } = this.#automata
    let at = from
    let unit = text.charCodeAt(at)
    while (at + 1 < text.length) {
      const next = text.charCodeAt(at + 1)
      if (unit >= ASCII || next >= ASCII || mayBegin[unit * ASCII + next] === 1) break
      unit = next
      at++
    }
    return at
  }

  #advance(word: number, code: number, bytes: number): void {
    if (bytes > 0) this.#lineBreaks = 0
    for (const reading of this.#readings) {
      reading.state = reading === this.#encoded ? code : word
      reading.positions.advance(bytes)
    }
  }

  #report(end: number): void {
    for (const reading of this.#readings) {
      if (reading.automaton.hasHit(reading.state)) reading.report(end)
    }
  }

  #takeUnit(unit: number, start: number): void {
    const { isWide } = this.#automata
    const end = start + 1
    if (this.#half !== 0 && (unit & 0xfc00) !== 0xdc00) this.#endHalf(start)
    if (unit <= 0x7f || this.#unit === 'byte') this.#takeByte(0, unit, start, end)
    else if (!isWide) this.#takeByte(0, NO_BYTE, start, end)
    else this.#takeWide(unit, start)
  }

  /** Two units may be one character, even if a piece ends between them. */
  #takeWide(unit: number, start: number): void {
    const half = this.#half
    this.#half = (unit & 0xfc00) === 0xd800 ? unit : 0
    if (half !== 0) this.#takeBytes(utf8(0x10000 + ((half - 0xd800) << 10) + unit - 0xdc00), start - 1, start + 1)
    else if (this.#half === 0) this.#takeBytes(utf8(unit), start, start + 1)
  }

  #endHalf(end: number): void {
    if (this.#half === 0) return
    this.#half = 0
    this.#takeBytes(utf8(REPLACEMENT), end - 1, end)
  }

  #takeBytes(bytes: readonly number[], start: number, end: number): void {
    for (const byte of bytes) this.#takeByte(0, byte, start, end)
  }

  /** `from`: the byte has already passed this many levels of escapes. */
  #takeByte(from: number, byte: number, start: number, end: number): void {
    for (let level = from; level < this.#spelled.length; level++) {
      this.#spelled[level]!.take(byte, start, end)
      const decoder = this.#decoders[level]
      if (!decoder || decoder.passes(byte)) continue
      decoder.take(byte, start, end)
      return
    }
    this.#takeEncoded(byte, start, end)
  }

  #takeEncoded(byte: number, start: number, end: number): void {
    const isBreak = isLineBreak(byte)
    this.#lineBreaks = isBreak ? this.#lineBreaks + 1 : 0
    if (isBreak && this.#lineBreaks <= MAX_LINE_BREAKS) this.#encoded.positions.skip(end)
    else this.#encoded.take(byte, start, end)
  }

  /** Most lines end everything that has begun, so that a stream can show them immediately. */
  #takeLineFeed(text: string, at: number, begin: number): void {
    const [start, next] = [begin + at, begin + at + 1]
    const isContinued = this.#followsBase64(text, at)
    if (isContinued || this.#automata.spansLines) this.#takeUnit(LINE_FEED, start)
    else this.#endAll(next)
    if (!isContinued) this.#encoded.begin(next)
  }

  /** A line break is in no escape, and here in no secret. */
  #endAll(next: number): void {
    this.#endHalf(next - 1)
    for (const decoder of this.#decoders) decoder.flush(next - 1)
    for (const reading of this.#readings) reading.begin(next)
    this.#lineBreaks = 0
    this.#floor = next
  }

  /** True if the line before the line breaks that end at `at` is long enough, and of base64. */
  #followsBase64(text: string, at: number): boolean {
    // The tail is before the text.
    const unitAt = (index: number) =>
      index < 0 ? this.#tail.charCodeAt(this.#tail.length + index) : text.charCodeAt(index)
    let end = at
    while (at - end < MAX_LINE_BREAKS && isLineBreak(unitAt(end - 1))) end--
    for (let back = 1; back <= MIN_WRAPPED_CHARS; back++) if (!isBase64(unitAt(end - back))) return false
    return true
  }
}

const isLineBreak = (unit: number) => unit === LINE_FEED || unit === CARRIAGE_RETURN

const BASE64_CHARACTERS = new Set(
  Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_', (character) =>
    character.charCodeAt(0),
  ),
)
const isBase64 = (unit: number) => BASE64_CHARACTERS.has(unit)
