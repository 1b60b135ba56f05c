/** Text that grows at its end, kept as its UTF-8 bytes: what is there is neither joined nor encoded again. */

export type GrowingBytes = {
  readonly isEmpty: boolean
  readonly append: (text: string) => void
  /** All so far. Only good until more is appended. */
  readonly bytes: () => Buffer
}

const FIRST_BYTES = 8 * 1024

export function createGrowingBytes(): GrowingBytes {
  let bytes = Buffer.alloc(0)
  let length = 0
  return {
    get isEmpty() {
      return length === 0
    },
    append(text) {
      const needed = length + Buffer.byteLength(text)
      if (needed > bytes.length) {
        // Twice as much each time, so that a byte is copied twice at the most, over all.
        const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 * needed))
        bytes.copy(larger, 0, 0, length)
        bytes = larger
      }
      length += bytes.write(text, length)
    },
    bytes: () => bytes.subarray(0, length),
  }
}
