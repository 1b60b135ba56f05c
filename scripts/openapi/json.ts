/** A document as plain JSON, and walks over it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }
export type Schemas = Record<string, Json>

export const REF = /"#\/components\/schemas\/([^"]+)"/g

export const refsIn = (text: string): string[] => [...text.matchAll(REF)].map((match) => match[1]!)

export const refTo = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keys of plain data, which may look like a schema. */
const DATA: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'example', 'examples'])

/** A copy in which `change` was applied to every object, inner ones first, except to data and to the table of `properties`. */
export function mapObjects(value: Json, change: (object: JsonObject) => JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => mapObjects(item, change))
  if (!isObject(value)) return value
  const inner = Object.entries(value).map(([key, child]): [string, Json] => {
    if (DATA.has(key)) return [key, child]
    return [key, key === 'properties' ? mapValues(child, change) : mapObjects(child, change)]
  })
  return change(Object.fromEntries(inner))
}

function mapValues(table: Json, change: (object: JsonObject) => JsonObject): Json {
  if (!isObject(table)) return table
  return Object.fromEntries(Object.entries(table).map(([name, schema]) => [name, mapObjects(schema, change)]))
}
