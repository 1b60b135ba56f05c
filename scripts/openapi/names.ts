/**
 * Gives the schemas of the OpenAPI document the names a client generator should use. The plugin writes each registered
 * schema twice, as a client sends it and as it comes back, used or not. Here only what is used is left, and once.
 */
import { z } from 'zod'
import type { Json, Schemas } from './json.ts'
import { REF, refsIn } from './json.ts'

/** Cannot end a name of ours, so `LlmConfig` as it is sent is never taken for a schema called `LlmConfigInput`. */
const MARK = '__'

/** The schemas that have an id, under names that `nameSchemas` can tell apart; what is noted on all others is found as well. */
export function markedRegistry() {
  const registry = z.registry<{ id?: string }>()
  registry._map = new NotesOfAll()
  for (const [id, schema] of z.globalRegistry._idmap) {
    registry.add(schema, { ...z.globalRegistry.get(schema), id: `${id}${MARK}` })
  }
  return registry
}

class NotesOfAll extends WeakMap<z.core.$ZodType, object> {
  override get(schema: z.core.$ZodType): object | undefined {
    return super.get(schema) ?? z.globalRegistry._map.get(schema)
  }

  override has(schema: z.core.$ZodType): boolean {
    return super.has(schema) || z.globalRegistry._map.has(schema)
  }
}

type Named = { readonly paths: Json; readonly schemas: Schemas }

/** `extra` are schemas to keep although no path uses them. Throws when two different schemas would get one name. */
export function nameSchemas(paths: Json, all: Schemas, extra: readonly string[]): Named {
  const used = usedBy(JSON.stringify([paths, extra.map((id) => ({ $ref: `#/components/schemas/${id}${MARK}` }))]), all)
  const schemas: Schemas = {}
  // The schema of what is sent comes first: what has a default may be absent in it, and the one schema has to allow
  // that.
  for (const id of [...used].toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), 'en') || b.length - a.length)) {
    const name = nameOf(id)
    const schema = unmarked(all[id] ?? null)
    if (!(name in schemas)) schemas[name] = schema
    else if (essence(schemas[name]!) !== essence(schema))
      throw new Error(`${name} is sent and returned in different forms; give one of them another id.`)
  }
  return { paths: unmarked(paths), schemas }
}

const nameOf = (id: string) => id.slice(0, id.lastIndexOf(MARK))

/** Returns what is left of a schema without the lists of required fields. */
function essence(schema: Json): string {
  return JSON.stringify(schema, (key, value: unknown) =>
    key === 'required' && Array.isArray(value) ? undefined : value,
  )
}

function usedBy(text: string, all: Schemas, used = new Set<string>()): Set<string> {
  for (const id of refsIn(text)) {
    if (used.has(id)) continue
    used.add(id)
    usedBy(JSON.stringify(all[id] ?? null), all, used)
  }
  return used
}

function unmarked(value: Json): Json {
  const text = JSON.stringify(value).replaceAll(REF, (ref, id: string) => ref.replace(id, nameOf(id)))
  return JSON.parse(text) as Json
}
