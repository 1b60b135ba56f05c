/**
 * Gives the schemas of the OpenAPI document the names a client generator should use. The generator writes each registered
 * schema twice, as a client sends it and as it comes back, used or not; here only what a route uses is left, and the two are one
 * schema where they say the same.
 */
import { z } from 'zod'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Schemas = Record<string, Json>
type Document = { paths?: unknown; components?: { schemas?: unknown } }

/** Cannot end a name of ours, so `LlmConfig` as it is sent is never taken for a schema called `LlmConfigInput`. */
const MARK = '__'
const SENT = `${MARK}Input`

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

/** Throws when two schemas would get one name. */
export function nameSchemas<T extends Document>(document: T): T {
  const all = (document.components?.schemas ?? {}) as Schemas
  const used = usedBy(JSON.stringify(document.paths ?? {}), all)
  const different = differing(used, all)
  const names = new Map<string, string>()
  for (const id of used) names.set(id, nameOf(id, used, different))

  const schemas: Schemas = {}
  for (const [id, name] of [...names].toSorted(([, a], [, b]) => (a < b ? -1 : 1))) {
    const schema = renamed(all[id]!, names)
    if (name in schemas && JSON.stringify(schemas[name]) !== JSON.stringify(schema)) {
      throw new Error(`Two schemas would be called ${name}; give one of them another id.`)
    }
    schemas[name] = schema
  }
  return { ...document, paths: renamed(document.paths as Json, names), components: { ...document.components, schemas } }
}

function nameOf(id: string, used: Set<string>, different: Set<string>): string {
  if (!id.endsWith(SENT)) return id.slice(0, -MARK.length)
  const name = id.slice(0, -SENT.length)
  return used.has(`${name}${MARK}`) && different.has(name) ? `${name}Input` : name
}

/** The names of which the sent and the returned schema differ, by themselves or through what they refer to. */
function differing(used: Set<string>, all: Schemas): Set<string> {
  const unmark = (id: string) => JSON.stringify(all[id]).replaceAll(SENT, MARK)
  const pairs = [...used].filter((id) => id.endsWith(SENT)).map((id) => id.slice(0, -SENT.length))
  const different = new Set(
    pairs.filter((name) => used.has(name + MARK) && unmark(name + SENT) !== unmark(name + MARK)),
  )
  for (let before = -1; before !== different.size;) {
    before = different.size
    for (const name of pairs) {
      if (refsIn(JSON.stringify(all[name + SENT])).some((id) => different.has(id.slice(0, id.lastIndexOf(MARK)))))
        different.add(name)
    }
  }
  return different
}

function usedBy(text: string, all: Schemas, used = new Set<string>()): Set<string> {
  for (const id of refsIn(text)) {
    if (used.has(id)) continue
    used.add(id)
    usedBy(JSON.stringify(all[id] ?? null), all, used)
  }
  return used
}

const REF = /"#\/components\/schemas\/([^"]+)"/g

const refsIn = (text: string): string[] => [...text.matchAll(REF)].map((match) => match[1]!)

function renamed(value: Json, names: Map<string, string>): Json {
  const text = JSON.stringify(value).replaceAll(REF, (ref, id: string) => ref.replace(id, names.get(id) ?? id))
  return JSON.parse(text) as Json
}
