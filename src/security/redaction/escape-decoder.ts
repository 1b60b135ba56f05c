/**
 * Decodes one level of escapes in a stream of bytes: those of JSON, shells and other languages, or those of URLs. Knows
 * no secret.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

/** Receives the bytes of a text one by one; `start` and `end` are the position of the byte in the text. */
export interface ByteSink {
  take(byte: number, start: number, end: number): void
}

const BACKSLASH = 0x5c
const PERCENT = 0x25
const QUOTE = 0x27
const REPLACEMENT = 0xfffd

/** Escapes that begin with a backslash (or a quote, as in shells), or with a percent sign. */
export type EscapeKind = 'backslash' | 'percent'

/** The longest escape: two `\uXXXX` that form one character. */
const MAX_ESCAPE = 12

/** Results of decoding that are not a byte, nor a character plus `CHARACTER`. */
const NO_ESCAPE = -1
const BEGUN = -2
/** A high surrogate without a low surrogate after it. */
const HALF = -3
const CHARACTER = 0x1000000
const HALF_LENGTH = 6

/**
 * Yields the bytes that each escape stands for, and everything else unchanged. Buffers only bytes that may still become
 * an escape, at most `MAX_ESCAPE`.
 */
export class EscapeDecoder implements ByteSink {
  readonly #isPercent: boolean
  readonly #next: ByteSink
  readonly #pending = new Uint8Array(MAX_ESCAPE)
  readonly #starts = new Float64Array(MAX_ESCAPE)
  #length = 0

  constructor(kind: EscapeKind, next: ByteSink) {
    this.#isPercent = kind === 'percent'
    this.#next = next
  }

  get isIdle(): boolean {
    return this.#length === 0
  }

  /** Returns true if it passes this byte on immediately and unchanged. */
  passes(byte: number): boolean {
    return this.#length === 0 && !this.#isIntroducer(byte)
  }

  reset(): void {
    this.#length = 0
  }

  take(byte: number, start: number, end: number): void {
    if (this.passes(byte)) {
      this.#next.take(byte, start, end)
      return
    }
    if (this.#length === 1 && !mayFollow(this.#pending[0]!, byte)) {
      this.#passFirst(byte, start, end)
      return
    }
    this.#pending[this.#length] = byte
    this.#starts[this.#length++] = start
    const meaning = readEscape(this.#pending, this.#length)
    if (meaning === BEGUN) return
    if (meaning >= 0) this.#give(meaning, this.#length, end)
    else this.#readAgain(end)
  }

  /** The result of `readAgain` for the case that floods of backslashes, percent signs or quotes consist of. */
  #passFirst(byte: number, start: number, end: number): void {
    const [first, begin] = [this.#pending[0]!, this.#starts[0]!]
    this.#length = this.#isIntroducer(byte) ? 1 : 0
    this.#pending[0] = byte
    this.#starts[0] = start
    this.#next.take(first, begin, start)
    if (this.#length === 0) this.#next.take(byte, start, end)
  }

  /** The text has ended: the buffered bytes are not an escape. */
  flush(end: number): void {
    while (this.#length > 0) {
      this.#give(isHalf(this.#pending, this.#length) ? HALF : NO_ESCAPE, this.#length, end)
      this.#readAgain(end)
    }
  }

  /** The buffered bytes are a different escape than expected, or none: an escape may begin after the first of them. */
  #readAgain(end: number): void {
    while (this.#length > 0) {
      let meaning = this.#isIntroducer(this.#pending[0]!) ? BEGUN : NO_ESCAPE
      let length = 1
      while (meaning === BEGUN && length < this.#length) meaning = readEscape(this.#pending, ++length)
      if (meaning === BEGUN) return
      this.#give(meaning, length, end)
    }
  }

  #isIntroducer(byte: number): boolean {
    return this.#isPercent ? byte === PERCENT : byte === BACKSLASH || byte === QUOTE
  }

  /** Passes on the meaning of the first `length` bytes, and keeps the rest. `end` is the end of the last of all. */
  #give(meaning: number, length: number, end: number): void {
    const usedLength = meaning === HALF ? HALF_LENGTH : meaning === NO_ESCAPE ? 1 : length
    const byte = meaning === NO_ESCAPE ? this.#pending[0]! : meaning
    const start = this.#starts[0]!
    const until = usedLength < this.#length ? this.#starts[usedLength]! : end
    this.#length -= usedLength
    // `copyWithin` would be slower than all the rest for so few bytes.
    for (let at = 0; at < this.#length; at++) {
      this.#pending[at] = this.#pending[at + usedLength]!
      this.#starts[at] = this.#starts[at + usedLength]!
    }
    if (byte >= 0 && byte < 0x100) this.#next.take(byte, start, until)
    else for (const one of utf8(byte === HALF ? REPLACEMENT : byte - CHARACTER)) this.#next.take(one, start, until)
  }
}

/** Decodes a whole text. */
export function decodeEscapes(kind: EscapeKind, bytes: Uint8Array): Uint8Array {
  const out: number[] = []
  const decoder = new EscapeDecoder(kind, { take: (byte) => void out.push(byte) })
  for (const byte of bytes) decoder.take(byte, 0, 0)
  decoder.flush(0)
  return Uint8Array.from(out)
}

/** `\n` and similar. Shells and languages have more of them than JSON. */
const LETTERS: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, e: 27, E: 27 }

/** The meaning of each byte after a backslash; -1 if more bytes are needed, or if it is not an escape. */
const MEANS = Int8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  if (/[ -/:-@[-`{-~]/.test(character)) return byte
  return LETTERS[character] ?? -1
})

const HEX = Int8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return /[0-9a-fA-F]/.test(character) ? Number.parseInt(character, 16) : -1
})

const isHex = (byte: number) => HEX[byte]! >= 0
const isOctal = (byte: number) => byte >= 0x30 && byte <= 0x37
function mayFollow(introducer: number, byte: number): boolean {
  if (introducer === PERCENT) return isHex(byte)
  if (introducer === QUOTE) return byte === BACKSLASH
  return MEANS[byte]! >= 0 || byte === 0x78 || byte === 0x75 || byte === 0x55 || (byte >= 0x30 && byte <= 0x33)
}

function readEscape(bytes: Uint8Array, length: number): number {
  if (length === 1) return BEGUN
  if (bytes[0] === PERCENT) return readHexByte(bytes, length, 1)
  if (bytes[0] === QUOTE) return readQuote(bytes, length)
  const second = bytes[1]!
  const valueOfEscape = MEANS[second]!
  if (valueOfEscape >= 0) return valueOfEscape
  if (second === 0x78) return length === 2 ? BEGUN : readHexByte(bytes, length, 2)
  if (second === 0x75) return readUnicode(bytes, length)
  if (second === 0x55) return readLongUnicode(bytes, length)
  return isOctal(second) && second <= 0x33 ? readOctal(bytes, length) : NO_ESCAPE
}

/** `%c3`, `\xc3` */
function readHexByte(bytes: Uint8Array, length: number, from: number): number {
  if (!isHex(bytes[length - 1]!)) return NO_ESCAPE
  return length < from + 2 ? BEGUN : HEX[bytes[from]!]! * 16 + HEX[bytes[from + 1]!]!
}

/** `\303` */
function readOctal(bytes: Uint8Array, length: number): number {
  if (!isOctal(bytes[length - 1]!)) return NO_ESCAPE
  return length < 4 ? BEGUN : (bytes[1]! - 0x30) * 64 + (bytes[2]! - 0x30) * 8 + bytes[3]! - 0x30
}

/** `'\''`: how shells write a quote inside quotes. */
function readQuote(bytes: Uint8Array, length: number): number {
  if (bytes[length - 1] !== (length === 2 ? BACKSLASH : QUOTE)) return NO_ESCAPE
  return length < 4 ? BEGUN : QUOTE
}

/** `\u00e9`, `\ud83d\ude00`, `\u{1f600}` */
function readUnicode(bytes: Uint8Array, length: number): number {
  if (length === 2) return BEGUN
  if (bytes[2] === 0x7b) return readBraces(bytes, length)
  const last = bytes[length - 1]!
  if (length < HALF_LENGTH) return isHex(last) ? BEGUN : NO_ESCAPE
  if (length === HALF_LENGTH) {
    if (!isHex(last)) return NO_ESCAPE
    return isHalf(bytes, length) ? BEGUN : CHARACTER + hexNumber(bytes, 2, 6)
  }
  const fits = length === 7 ? last === BACKSLASH : length === 8 ? last === 0x75 : isHex(last)
  if (!fits) return HALF
  if (length < MAX_ESCAPE) return BEGUN
  const low = hexNumber(bytes, 8, 12)
  if (low < 0xdc00 || low > 0xdfff) return HALF
  return CHARACTER + 0x10000 + ((hexNumber(bytes, 2, 6) - 0xd800) << 10) + low - 0xdc00
}

/** `\u{1f600}`: one to six digits. */
function readBraces(bytes: Uint8Array, length: number): number {
  const last = bytes[length - 1]!
  if (length === 3 || (isHex(last) && length <= 9)) return BEGUN
  return last === 0x7d && length > 4 ? readCharacter(hexNumber(bytes, 3, length - 1)) : NO_ESCAPE
}

/** `\U0001f600` */
function readLongUnicode(bytes: Uint8Array, length: number): number {
  if (length > 2 && !isHex(bytes[length - 1]!)) return NO_ESCAPE
  return length < 10 ? BEGUN : readCharacter(hexNumber(bytes, 2, 10))
}

const readCharacter = (code: number) => (code > 0x10ffff ? NO_ESCAPE : CHARACTER + code)

/** Returns true if this begins with a high surrogate. */
function isHalf(bytes: Uint8Array, length: number): boolean {
  if (length < HALF_LENGTH || bytes[0] !== BACKSLASH || bytes[1] !== 0x75 || bytes[2] === 0x7b) return false
  return (hexNumber(bytes, 2, 6) & 0xfc00) === 0xd800
}

function hexNumber(bytes: Uint8Array, from: number, to: number): number {
  let number = 0
  for (let at = from; at < to; at++) number = number * 16 + HEX[bytes[at]!]!
  return number
}

export function utf8(code: number): readonly number[] {
  if (code < 0x80) return [code]
  if (code < 0x800) return [0xc0 | (code >> 6), 0x80 | (code & 63)]
  if (code >= 0xd800 && code < 0xe000) return utf8(REPLACEMENT)
  if (code < 0x10000) return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)]
  return [0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)]
}
