/** JSON text that is an object, or is not: what models write for arguments can be anything. */
import { parseForeignJson } from './foreign-json.ts'

/** Undefined also for an object that is too deep or too large to be worked with. */
export function parseJsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseForeignJson(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    // No JSON at all, or too much of it: the same answer.
    return undefined
  }
}
