/**
 * Watches the bytes of a form between its files: preamble, headers of parts, and what follows the last one. The parser of
 * forms cuts long headers and skips parts whose header it does not understand, both without an error.
 */

/** Names of files have at most 255 bytes, and their paths 4096. */
export const MAX_HEAD_BYTES = 16 * 1024

const END = Buffer.from('\r\n\r\n')
/** Follows the last delimiter. What comes after it is not a part, whatever it contains (RFC 2046, section 5.1.1). */
const LAST = Buffer.from('--')

export class PartHeads {
  readonly #delimiter: Buffer
  /** Bytes that may be the beginning of what is searched for. The first delimiter needs no line before it. */
  #rest: Buffer = Buffer.from('\r\n')
  #place: 'preamble' | 'head' | 'content' | 'epilogue' = 'preamble'
  /** Bytes of the preamble, of the present header, or of the epilogue. */
  #bytes = 0
  #count = 0

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /** The headers that have ended. */
  get count(): number {
    return this.#count
  }

  /** Returns false if there are too many bytes outside of the files, or a header has no end. */
  add(chunk: Buffer): boolean {
    let data = Buffer.concat([this.#rest, chunk])
    for (;;) {
      // All of less than two bytes is kept in `#rest`.
      if (this.#place === 'head' && this.#bytes === 0 && data.subarray(0, 2).equals(LAST)) this.#place = 'epilogue'
      if (this.#place === 'epilogue') {
        this.#rest = Buffer.alloc(0)
        return (this.#bytes += data.length) <= MAX_HEAD_BYTES
      }
      const delimiter = data.indexOf(this.#delimiter)
      const at = this.#place === 'head' ? data.indexOf(END) : delimiter
      if (delimiter !== -1 && (at === -1 || delimiter < at)) return false
      const passedBytes = at === -1 ? Math.max(0, data.length - this.#delimiter.length + 1) : at
      if (this.#place !== 'content' && (this.#bytes += passedBytes) > MAX_HEAD_BYTES) return false
      if (at === -1) {
        this.#rest = Buffer.from(data.subarray(passedBytes))
        return true
      }
      // The line break before a delimiter may be the last one of a header.
      data = data.subarray(this.#place === 'head' ? at + 2 : at + this.#delimiter.length)
      this.#turn()
    }
  }

  #turn(): void {
    if (this.#place === 'head') this.#count++
    this.#place = this.#place === 'head' ? 'content' : 'head'
    this.#bytes = 0
  }
}
