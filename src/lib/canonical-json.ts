/** One text for each JSON value, whatever the order its keys were written in: RFC 8785, the JSON Canonicalization Scheme. */

/** For values that came out of `JSON.parse`: ECMAScript writes their strings and numbers as the RFC asks. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  // By UTF-16 code units, as the RFC has it and as `<` compares.
  entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
}
