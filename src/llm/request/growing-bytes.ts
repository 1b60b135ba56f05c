/** Text that grows at its end, stored as UTF-8 bytes: existing text is neither joined nor encoded again. */

export type GrowingBytes = {
  readonly isEmpty: boolean
  readonly append: (text: string) => void
  /** Returns all bytes so far. Valid only until more is appended. */
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
        // Double the size each time, so that on average a byte is copied at most twice.
        const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 * needed))
        bytes.copy(larger, 0, 0, length)
        bytes = larger
      }
      length += bytes.write(text, length)
    },
    bytes: () => bytes.subarray(0, length),
  }
}
