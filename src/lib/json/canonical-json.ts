/**
 * Returns one text for each JSON value, independent of the order of its keys: RFC 8785, the JSON Canonicalization
 * Scheme.
 */

/** Takes values from `JSON.parse`: ECMAScript formats their strings and numbers as the RFC requires. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  // Loops instead of callbacks: one stack frame per level, so that every value that could be stored can be hashed,
  // however deep.
  const parts: string[] = []
  if (Array.isArray(value)) {
    for (const item of value) parts.push(canonicalJson(item))
    return `[${parts.join(',')}]`
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object that is not a list
  const record = value as Record<string, unknown>
  // The keys are sorted by UTF-16 code units, as the RFC requires and `sort` does.
  for (const key of Object.keys(record).sort()) {
    if (record[key] !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`)
  }
  return `{${parts.join(',')}}`
}
