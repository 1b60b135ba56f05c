/**
 * What zod cannot say in JSON Schema, or says in a form that client generators misread. Each function changes one thing
 * in one schema; `scripts/openapi.ts` applies them to the whole document.
 */
import type { Json, JsonObject, Schemas } from './json.ts'
import { isObject, mapObjects, refTo } from './json.ts'

const MAX_INT32 = 2 ** 31 - 1

/** Schemas as the plugin writes them -> schemas that generators read well. Before they are named. */
export function shapeSchemas(schemas: Schemas): Schemas {
  const shape = (schema: JsonObject) => noteDefault(noteFlag(widenNumbers(joinNull(schema))))
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, mapObjects(schema, shape)]))
}

/** Shapes what is not a component: parameters keep their defaults, which all generators leave optional there. */
export function shapePaths(paths: Json): Json {
  return mapObjects(paths, (schema) => widenNumbers(joinNull(schema)))
}

/** `anyOf: [{type: x}, {type: null}]` -> `type: [x, null]`. */
function joinNull(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema
  const [value, none] = anyOf
  if (!isObject(value!) || !isObject(none!) || none['type'] !== 'null' || typeof value['type'] !== 'string')
    return schema
  return { ...value, ...rest, type: [value['type'], 'null'], ...nullableEnum(value) }
}

const nullableEnum = ({ enum: names }: JsonObject) => (Array.isArray(names) ? { enum: [...names, null] } : {})

/** Numbers get a width: an integer 64 bits unless it is known to fit 31. */
function widenNumbers(schema: JsonObject): JsonObject {
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  if (type === 'number') return { ...schema, format: 'double' }
  if (type !== 'integer') return schema
  const { maximum } = schema
  return { ...schema, format: typeof maximum === 'number' && maximum <= MAX_INT32 ? 'int32' : 'int64' }
}

/** Java has no type for a boolean that is always true: the description says it instead. */
function noteFlag(schema: JsonObject): JsonObject {
  const { const: value, ...rest } = schema
  if (schema['type'] !== 'boolean' || value === undefined) return schema
  return { description: `Only \`${String(value)}\`.`, ...rest }
}

/** Some generators make a field with a default a required one, also in what clients send: the description says it instead. */
function noteDefault(schema: JsonObject): JsonObject {
  if (!('default' in schema) || schema['default'] === undefined || 'properties' in schema) return schema
  const { default: value, description, ...rest } = schema
  const note = `Default: \`${JSON.stringify(value)}\`.`
  return { ...rest, description: typeof description === 'string' ? `${description} ${note}` : note }
}

/** Formats with a long pattern -> the one schema that has it. */
const SHARED = [
  { name: 'Uuid', format: 'uuid', description: 'A UUID.' },
  { name: 'Timestamp', format: 'date-time', pattern: /\(\?:Z\)\)\$$/, description: 'A time in UTC, RFC 3339.' },
  { name: 'DateTime', format: 'date-time', pattern: /./, description: 'A time with its offset, RFC 3339.' },
]

/** Replaces repeated patterns by `$ref`s. After naming; adds to `schemas`. */
export function shareFormats(value: Json, schemas: Schemas): Json {
  return mapObjects(value, (schema) => {
    const { type, format, pattern, description, ...rest } = schema
    const shared = SHARED.find((one) => one.format === format && (one.pattern?.test(String(pattern)) ?? true))
    if (type !== 'string' || shared === undefined || pattern === undefined || Object.keys(rest).length > 0)
      return schema
    schemas[shared.name] ??= { type, format: shared.format, pattern, description: shared.description }
    return { ...refTo(shared.name), ...(description !== undefined && { description }) }
  })
}

/** What tells the members of a union apart. */
const DISCRIMINATORS = ['type', 'kind']

/** `oneOf` with a `discriminator` for each union of schemas that have a constant `type` or `kind`. After naming. */
export function discriminate(value: Json, schemas: Schemas): Json {
  return mapObjects(value, (schema) => {
    const { anyOf, oneOf = anyOf, ...rest } = schema
    if (!Array.isArray(oneOf) || 'discriminator' in schema) return schema
    for (const propertyName of DISCRIMINATORS) {
      const mapping = mappingOf(oneOf, propertyName, schemas)
      if (mapping) return { ...rest, oneOf, discriminator: { propertyName, mapping } }
    }
    return schema
  })
}

/** Undefined if two members have the same constant, or one has none. */
function mappingOf(members: readonly Json[], property: string, schemas: Schemas): JsonObject | undefined {
  const mapping: JsonObject = {}
  for (const member of members) {
    const ref = refOf(member)
    const constant = ref === undefined ? undefined : constantOf(schemas[nameIn(ref)], property, schemas)
    if (constant === undefined || ref === undefined || constant in mapping) return undefined
    mapping[constant] = ref
  }
  return mapping
}

const refOf = (schema: Json): string | undefined => {
  const ref = isObject(schema) ? schema['$ref'] : undefined
  return typeof ref === 'string' ? ref : undefined
}

const nameIn = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)

/** The one value of the property: of a union, the one that all of its members have. */
function constantOf(schema: Json | undefined, property: string, schemas: Schemas): string | undefined {
  if (!isObject(schema)) return undefined
  const members = schema['oneOf'] ?? schema['anyOf']
  if (Array.isArray(members)) {
    const constants = new Set(
      members.map((member) => constantOf(schemas[nameIn(refOf(member) ?? '')], property, schemas)),
    )
    return constants.size === 1 ? [...constants][0] : undefined
  }
  const { properties } = schema
  const own = isObject(properties) ? properties[property] : undefined
  return isObject(own) && typeof own['const'] === 'string' ? own['const'] : undefined
}
