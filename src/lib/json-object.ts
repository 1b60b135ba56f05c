/** JSON text that is an object, or is not: what models write for arguments can be anything. */
export function parseJsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    // No JSON at all: the same answer.
    return undefined
  }
}
