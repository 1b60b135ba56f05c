/** One text for each JSON value, whatever the order its keys were written in: RFC 8785, the JSON Canonicalization Scheme. */

/** For values that came out of `JSON.parse`: ECMAScript writes their strings and numbers as the RFC asks. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  // Loops, not callbacks: one frame to a level, so that whatever could be read and stored can be hashed, however deep.
  const parts: string[] = []
  if (Array.isArray(value)) {
    for (const item of value) parts.push(canonicalJson(item))
    return `[${parts.join(',')}]`
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object that is not a list
  const record = value as Record<string, unknown>
  // By UTF-16 code units, as the RFC has it and as `sort` does.
  for (const key of Object.keys(record).sort()) {
    if (record[key] !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`)
  }
  return `{${parts.join(',')}}`
}
