/** Filters of lists by the metadata of conversations: which fields they see, and how a client writes one. */
import { z } from 'zod'

/** They are in memory for every conversation. */
const [MAX_FIELDS, MAX_NAME_LENGTH, MAX_VALUE_LENGTH] = [20, 64, 256]
/** Filters of one request. */
const MAX_FILTERS = 10

/** Returns the first fields that hold a short text, a number or a boolean: their values as texts. */
export function filterableFields(metadata: Readonly<Record<string, unknown>>): Record<string, string> {
  const fields: [string, string][] = []
  for (const [name, value] of Object.entries(metadata)) {
    if (fields.length === MAX_FIELDS) break
    if (!['string', 'number', 'boolean'].includes(typeof value)) continue
    const text = String(value)
    if (name.length <= MAX_NAME_LENGTH && text.length <= MAX_VALUE_LENGTH) fields.push([name, text])
  }
  return Object.fromEntries(fields)
}

/** The name ends at the first `=`. */
export function pairIn(filter: string): [name: string, value: string] {
  const end = filter.indexOf('=')
  return [filter.slice(0, end), filter.slice(end + 1)]
}

export const MetadataFilter = z
  .string()
  .regex(/^[^=]{1,64}=/, 'must be name=value')
  .max(MAX_NAME_LENGTH + 1 + MAX_VALUE_LENGTH)

export const METADATA_FILTERS = {
  max: MAX_FILTERS,
  about: `Only with this field of \`metadata\`: \`name=value\`. Repeat the parameter for several, which all must fit. It finds texts of up to ${MAX_VALUE_LENGTH} characters, numbers and booleans among the first ${MAX_FIELDS} such fields.`,
}
