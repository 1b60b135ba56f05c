/** Parses what clients send. Its errors name the field. */
import type { z } from 'zod'
import { Problem, describeIssue } from '../../contract/problem.ts'

/** Throws a `Problem` that names the field. `root`: where the value is in the body. */
export function parseField<T>(schema: z.ZodType<T>, value: unknown, ...root: readonly string[]): T {
  const { success, data, error } = schema.safeParse(value ?? {})
  if (success) return data
  const [issue] = error.issues
  const { path, message } = describeIssue(issue ?? { path: [], message: 'is not valid' }, root)
  throw invalid(path, message)
}

/** `field` is empty: the whole body. */
export const invalid = (field: string, message: string): Problem =>
  new Problem('invalid_request', `${field === '' ? 'The body' : field}: ${message}`, {
    details: { errors: [{ path: field, message }] },
  })

/** Throws a `Problem`: nobody knows which one of two answers is meant. */
export function refuseTwice(field: string, ids: readonly string[]): void {
  const again = ids.find((id, at) => ids.indexOf(id) !== at)
  if (again !== undefined) throw invalid(field, `${again.slice(0, 200)} is answered twice`)
}
