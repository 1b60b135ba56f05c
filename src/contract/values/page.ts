/** What lists and filters share. */
import { z } from 'zod'

export const PageLimit = z.coerce.number().int().min(1).max(1000).default(100)

export const Count = z.object({ count: z.int().nonnegative() }).meta({ id: 'Count', examples: [{ count: 42 }] })

export const MAX_COUNTED_VALUES = 100

/** How often each value of a field occurs. */
export const ValueCounts = z
  .array(z.object({ value: z.string(), count: z.int().positive() }).meta({ id: 'ValueCount' }))
  .max(MAX_COUNTED_VALUES)
  .optional()
export type ValueCounts = NonNullable<z.infer<typeof ValueCounts>>

/** `true` or `false`; 1 and 0 are accepted too. */
export const Flag = z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'] }).meta({ type: 'boolean' })

/** `types=A&types=B`, and `types=A,B` as well. */
export function listOf<T extends z.ZodType<unknown, string>>(item: T, max: number) {
  return z
    .preprocess(splitNames, z.array(item).min(1).max(max))
    .transform((names): ReadonlySet<z.output<T>> => new Set(names))
}

/** `label=A&label=B`: each is a whole text, which can have commas. */
export function repeated<T extends z.ZodType<unknown, string>>(item: T, max: number) {
  return z
    .preprocess((value) => [value].flat(), z.array(item).min(1).max(max))
    .transform((texts): ReadonlySet<z.output<T>> => new Set(texts))
}

/** Returns any other value unchanged, for the schema to refuse. */
function splitNames(value: unknown): unknown {
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
  return texts.flatMap((text) => (typeof text === 'string' ? text.split(',').map((name) => name.trim()) : [text]))
}

/**
 * `next_page_id` of a list with only one page. Described as a string, as in other lists, so that all lists have one
 * type.
 */
export const OnlyPage = z.null().meta({ type: ['string', 'null'], description: 'Always null: there is one page only.' })
