/** Finds where a run of bytes may be cut without splitting a UTF-8 character. */

/**
 * Returns the length of the longest prefix that does not end inside a character. Bytes that are not UTF-8 are never
 * held back.
 */
export function completeUtf8Length(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    return sequenceLength(byte) > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** Returns the index of the first byte that can begin a character: bytes before it belong to a truncated one. */
export function firstUtf8Start(bytes: Uint8Array): number {
  let index = 0
  while (index < Math.min(3, bytes.length) && isContinuation(bytes[index] ?? 0)) index++
  return index
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4
  if (lead >= 0xe0) return lead <= 0xef ? 3 : 1
  return lead >= 0xc2 ? 2 : 1
}
