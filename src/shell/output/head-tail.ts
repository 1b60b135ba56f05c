/** Keeps the first and the last bytes of a stream of any length in bounded memory. */

export class HeadTail {
  readonly #headLimit: number
  readonly #tailLimit: number
  readonly #head: Buffer[] = []
  #headLength = 0
  /** A ring buffer, allocated when the head is full: most streams never need it. */
  #ring: Buffer | undefined
  /** Total bytes written to the ring. */
  #ringTotal = 0

  constructor({ headLimit, tailLimit }: { headLimit: number; tailLimit: number }) {
    this.#headLimit = headLimit
    this.#tailLimit = tailLimit
  }

  get total(): number {
    return this.#headLength + this.#ringTotal
  }

  /** Number of bytes in neither the head nor the tail. */
  get omitted(): number {
    return Math.max(0, this.#ringTotal - this.#tailLimit)
  }

  /** Copies `bytes`, so the caller may reuse its buffer. */
  push(bytes: Uint8Array): void {
    const toHead = Math.min(bytes.length, this.#headLimit - this.#headLength)
    if (toHead > 0) {
      this.#head.push(Buffer.from(bytes.subarray(0, toHead)))
      this.#headLength += toHead
    }
    if (toHead < bytes.length) this.#pushToRing(bytes.subarray(toHead))
  }

  head(): Buffer {
    return Buffer.concat(this.#head)
  }

  tail(): Buffer {
    if (!this.#ring) return Buffer.alloc(0)
    const end = this.#ringTotal % this.#tailLimit
    const newest = this.#ring.subarray(0, end)
    return this.#ringTotal < this.#tailLimit
      ? Buffer.from(newest)
      : Buffer.concat([this.#ring.subarray(end, this.#tailLimit), newest])
  }

  #pushToRing(bytes: Uint8Array): void {
    const ring = (this.#ring ??= Buffer.allocUnsafe(this.#tailLimit))
    const keptBytes = bytes.subarray(Math.max(0, bytes.length - this.#tailLimit))
    const start = (this.#ringTotal + bytes.length - keptBytes.length) % this.#tailLimit
    const beforeWrap = Math.min(keptBytes.length, this.#tailLimit - start)
    ring.set(keptBytes.subarray(0, beforeWrap), start)
    ring.set(keptBytes.subarray(beforeWrap), 0)
    this.#ringTotal += bytes.length
  }
}
