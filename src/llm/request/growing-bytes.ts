/** Text that grows at its end, stored as UTF-8 bytes: existing text is neither joined nor encoded again. */

export type GrowingBytes = {
  readonly isEmpty: boolean
  readonly append: (text: string) => void
  /**
   * Returns the text between `head` and `tail`, without copying it if `head` is the same buffer as last time. Valid only
   * until more is appended: the memory is used again.
   */
  readonly between: (head: Buffer, tail: Buffer) => Buffer
}

const FIRST_BYTES = 8 * 1024

export function createGrowingBytes(): GrowingBytes {
  let head: Buffer = Buffer.alloc(0)
  /** Begins with the head. */
  let bytes: Buffer = head
  let end = 0

  /** What was returned before stays as it is: it has the old memory. */
  const move = (newHead: Buffer, room: number) => {
    const larger = Buffer.allocUnsafeSlow(room)
    newHead.copy(larger)
    bytes.copy(larger, newHead.length, head.length, end)
    end += newHead.length - head.length
    head = newHead
    bytes = larger
  }
  /** Doubles the size each time, so that on average a byte is copied at most twice. */
  const makeRoom = (neededBytes: number) => {
    if (neededBytes > bytes.length) move(head, Math.max(FIRST_BYTES, 2 * neededBytes))
  }

  return {
    get isEmpty() {
      return end === head.length
    },
    append(text) {
      makeRoom(end + Buffer.byteLength(text))
      end += bytes.write(text, end)
    },
    between(newHead, tail) {
      if (newHead !== head) move(newHead, 2 * (newHead.length + end - head.length + tail.length))
      makeRoom(end + tail.length)
      tail.copy(bytes, end)
      return bytes.subarray(0, end + tail.length)
    },
  }
}

/**
 * Folds a list that only grows: repeated calls process new items only. `add` receives the items in order, each once per list. The fold starts over for another list, or one that became
 * shorter.
 */
export function createIncrementalFold<T, S>(begin: () => S, add: (value: S, item: T) => S): (items: readonly T[]) => S {
  let knownItems: readonly T[] | undefined
  let count = 0
  let value = begin()
  return (items) => {
    if (items !== knownItems || items.length < count) {
      knownItems = items
      count = 0
      value = begin()
    }
    for (const item of items.slice(count)) value = add(value, item)
    count = items.length
    return value
  }
}
