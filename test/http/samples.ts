/** A value that a JSON schema takes: its own example, or the least there is. */
import { uuid7 } from '../../src/lib/uuid7.ts'

export type Schema = {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly pattern?: string
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly minItems?: number
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

export function sampleOf(schema: Schema, components: Readonly<Record<string, Schema>>): unknown {
  const sample = (inner: Schema) => sampleOf(inner, components)
  if (schema.$ref !== undefined) return sample(components[schema.$ref.split('/').at(-1)!]!)
  const given = schema.examples?.[0] ?? schema.const ?? schema.enum?.[0] ?? schema.default
  if (given !== undefined) return given
  const choice = schema.anyOf?.[0] ?? schema.oneOf?.[0]
  if (choice) return sample(choice)
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(sample)) as unknown
  switch (schema.type) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]))
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sample(schema.items ?? {}))
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, 1)
    case 'boolean':
      return true
    default:
      return textOf(schema)
  }
}

function textOf({ format, pattern }: Schema): string {
  if (format === 'uuid') return uuid7()
  if (format === 'uri') return 'https://example.com/'
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z'
  return pattern?.includes('[0-9a-f]{64}') ? 'a'.repeat(64) : 'word'
}
