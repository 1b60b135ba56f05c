/** Splits a byte stream into its NUL-terminated fields, in bounded memory. */

/** Returns a function that receives each chunk. A field longer than `maxLength` is reported as `undefined`. */
export function splitNulFields(
  maxLength: number,
  onField: (field: Buffer | undefined) => void,
): (chunk: Uint8Array) => void {
  let parts: Buffer[] = []
  let length = 0

  const add = (part: Uint8Array) => {
    length += part.length
    // Copy it: a chunk is a view on a larger buffer, which it would keep alive.
    if (length <= maxLength) parts.push(Buffer.from(part))
    else parts = []
  }

  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(0); end !== -1; end = chunk.indexOf(0, start)) {
      add(chunk.subarray(start, end))
      const field = length <= maxLength ? Buffer.concat(parts) : undefined
      parts = []
      length = 0
      start = end + 1
      onField(field)
    }
    add(chunk.subarray(start))
  }
}
