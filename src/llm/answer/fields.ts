/** Reads fields of JSON from a foreign server: each has the expected type, or is empty. Nothing here throws. */
import { MAX_COST_USD, MAX_TOKENS } from '../../contract/values/message.ts'

export type Fields = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fields(value: unknown): Fields {
  return isObject(value) ? value : {}
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function string(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** USD, and undefined for what cannot be a cost. */
export function cost(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= MAX_COST_USD ? value : undefined
}

/** Ignores a number that no model reaches. */
export function count(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MAX_TOKENS ? Math.trunc(value) : 0
}
