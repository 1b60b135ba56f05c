/** Tells schemas of zod 4 from other values, whichever copy of zod has made them. */
import { z } from 'zod'
import { invalid } from '../errors/invalid.ts'

/** Zod 3 and JSON Schema have no such field. */
export const isSchema = (value: unknown): value is z.ZodType =>
  typeof value === 'object' && value !== null && '_zod' in value

/** Throws an error that says what to change. `what` is named in it. */
export function jsonSchemaOf(schema: z.ZodType, what: string): Record<string, unknown> {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' })
    return rest
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw invalid(`The schema of ${what} cannot be written as JSON Schema (${why}). Use types that JSON has.`)
  }
}

/** The object that the fields make, or that is given already. Throws for anything else. */
export function objectOf<Shape extends z.ZodRawShape>(shape: unknown, what: string): z.ZodObject<Shape> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the checks have found
  if (isSchema(shape) && shape._zod.def.type === 'object') return shape as z.ZodObject<Shape>
  const fields: readonly unknown[] = typeof shape === 'object' && shape !== null ? Object.values(shape) : [undefined]
  if (isSchema(shape) || !fields.every(isSchema))
    throw invalid(`The schema of ${what} is not made of fields of zod 4: write { name: z.string() }.`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the checks have found
  return z.object(shape as Shape)
}
