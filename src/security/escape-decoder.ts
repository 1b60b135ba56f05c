/** Undoes one level of escapes in a stream of bytes: of JSON, of shells and other languages, and of URLs. Knows no secret. */

/** Takes the bytes of a text one by one; `start` and `end` are where in the text the byte is written. */
export interface ByteSink {
  take(byte: number, start: number, end: number): void
}

const BACKSLASH = 0x5c
const PERCENT = 0x25
const QUOTE = 0x27
const REPLACEMENT = 0xfffd

/** The longest escape: two `\uXXXX` that are one character. */
const MAX_ESCAPE = 12

/** `undefined` when it is none, `more` when it is the beginning of one. `length` is how much of the bytes it takes. */
type Escape = { readonly bytes: readonly number[]; readonly length: number }
type Verdict = Escape | 'more' | undefined

/**
 * Answers for each escape the bytes it means, and everything else as it is. Holds back only what may still become an
 * escape, at most `MAX_ESCAPE` bytes, whatever they are.
 */
export class EscapeDecoder implements ByteSink {
  readonly #next: ByteSink
  readonly #pending = new Uint8Array(MAX_ESCAPE)
  readonly #starts = new Float64Array(MAX_ESCAPE)
  #length = 0

  constructor(next: ByteSink) {
    this.#next = next
  }

  get isIdle(): boolean {
    return this.#length === 0
  }

  take(byte: number, start: number, end: number): void {
    if (this.#length === 0 && byte !== BACKSLASH && byte !== PERCENT && byte !== QUOTE) {
      this.#next.take(byte, start, end)
      return
    }
    this.#pending[this.#length] = byte
    this.#starts[this.#length++] = start
    const verdict = readEscape(this.#pending, this.#length)
    if (verdict === 'more') return
    if (verdict === undefined || verdict.length < this.#length) this.#giveBack(verdict, end)
    else this.#give(verdict, end)
  }

  /** The text is over: what is held back is no escape. */
  flush(end: number): void {
    while (this.#length > 0) {
      const lone = this.#length >= 6 && this.#pending[1] === 0x75 ? surrogateAlone(this.#pending) : undefined
      this.#giveBack(lone, end)
    }
  }

  reset(): void {
    this.#length = 0
  }

  #give({ bytes }: Escape, end: number): void {
    const start = this.#starts[0]!
    this.#length = 0
    for (const byte of bytes) this.#next.take(byte, start, end)
  }

  /** What was read is another escape than it seemed, or none: the rest is read once more. */
  #giveBack(escape: Escape | undefined, end: number): void {
    const used = escape?.length ?? 1
    const rest = this.#pending.slice(used, this.#length)
    const starts = this.#starts.slice(used, this.#length)
    const first = this.#pending[0]!
    const begin = this.#starts[0]!
    this.#length = 0
    if (escape) for (const byte of escape.bytes) this.#next.take(byte, begin, starts[0] ?? end)
    else this.#next.take(first, begin, starts[0] ?? end)
    rest.forEach((byte, at) => this.take(byte, starts[at]!, starts[at + 1] ?? end))
  }
}

/** One level less, of a whole text. */
export function decodeOnce(bytes: Uint8Array): Uint8Array {
  const out: number[] = []
  const decoder = new EscapeDecoder({ take: (byte) => void out.push(byte) })
  for (const byte of bytes) decoder.take(byte, 0, 0)
  decoder.flush(0)
  return Uint8Array.from(out)
}

/** `\n` and its like. Shells and languages know more of them than JSON. */
const LETTERS: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, e: 27, E: 27 }

/** What each byte after a backslash means by itself; -1 where more must be read, or where it is no escape. */
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

function readEscape(bytes: Uint8Array, length: number): Verdict {
  if (length === 1) return 'more'
  const second = bytes[1]!
  if (bytes[0] === PERCENT) return readHexByte(bytes, length, 1)
  if (bytes[0] === QUOTE) return readQuote(bytes, length)
  const meant = MEANS[second]!
  if (meant >= 0) return { bytes: [meant], length: 2 }
  if (second === 0x78) return length === 2 ? 'more' : readHexByte(bytes, length, 2)
  if (second === 0x75) return readUnicode(bytes, length)
  if (second === 0x55) return readLongUnicode(bytes, length)
  return isOctal(second) && second <= 0x33 ? readOctal(bytes, length) : undefined
}

/** `%c3`, `\xc3` */
function readHexByte(bytes: Uint8Array, length: number, from: number): Verdict {
  if (!isHex(bytes[length - 1]!)) return undefined
  return length < from + 2 ? 'more' : { bytes: [HEX[bytes[from]!]! * 16 + HEX[bytes[from + 1]!]!], length }
}

/** `\303` */
function readOctal(bytes: Uint8Array, length: number): Verdict {
  if (!isOctal(bytes[length - 1]!)) return undefined
  if (length < 4) return 'more'
  return { bytes: [(bytes[1]! - 0x30) * 64 + (bytes[2]! - 0x30) * 8 + bytes[3]! - 0x30], length }
}

/** `'\''`: how shells write a quote inside quotes. */
function readQuote(bytes: Uint8Array, length: number): Verdict {
  if (bytes[length - 1] !== (length === 2 ? BACKSLASH : QUOTE)) return undefined
  return length < 4 ? 'more' : { bytes: [QUOTE], length }
}

/** `\u00e9`, `\ud83d\ude00`, `\u{1f600}` */
function readUnicode(bytes: Uint8Array, length: number): Verdict {
  if (length === 2) return 'more'
  if (bytes[2] === 0x7b) return readBraces(bytes, length)
  if (length <= 6) {
    if (!isHex(bytes[length - 1]!)) return undefined
    if (length < 6) return 'more'
    const code = hexNumber(bytes, 2, 6)
    if (code >= 0xd800 && code < 0xdc00) return 'more'
    return { bytes: utf8(code), length }
  }
  const last = bytes[length - 1]!
  const isFit = length === 7 ? last === BACKSLASH : length === 8 ? last === 0x75 : isHex(last)
  if (!isFit) return surrogateAlone(bytes)
  if (length < MAX_ESCAPE) return 'more'
  const low = hexNumber(bytes, 8, 12)
  if (low < 0xdc00 || low > 0xdfff) return surrogateAlone(bytes)
  return { bytes: utf8(0x10000 + ((hexNumber(bytes, 2, 6) - 0xd800) << 10) + low - 0xdc00), length }
}

/** `\u{1f600}`: one to six digits. */
function readBraces(bytes: Uint8Array, length: number): Verdict {
  if (length === 3) return 'more'
  const isEnd = bytes[length - 1] === 0x7d
  if (!isEnd) return isHex(bytes[length - 1]!) && length <= 9 ? 'more' : undefined
  return length === 4 ? undefined : escapeOf(hexNumber(bytes, 3, length - 1), length)
}

/** `\U0001f600` */
function readLongUnicode(bytes: Uint8Array, length: number): Verdict {
  if (length === 2) return 'more'
  if (!isHex(bytes[length - 1]!)) return undefined
  return length < 10 ? 'more' : escapeOf(hexNumber(bytes, 2, 10), length)
}

function escapeOf(code: number, length: number): Verdict {
  return code > 0x10ffff ? undefined : { bytes: utf8(code), length }
}

/** Half a character, as UTF-8 has it: that there was something. */
const surrogateAlone = (bytes: Uint8Array): Escape | undefined => {
  const code = hexNumber(bytes, 2, 6)
  return code >= 0xd800 && code < 0xdc00 ? { bytes: utf8(REPLACEMENT), length: 6 } : undefined
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
