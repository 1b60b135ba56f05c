/** Makes the events of different conversations comparable: without ids, times, and where they are. */

/** The ids of objects, and of the calls of subagents. */
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|call_[0-9a-f]{24}/g
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g
/** Each client makes its own idempotency keys. */
const LEFT_OUT = new Set(['idempotency_key', 'body_hash', 'idempotency'])
const NUMBERS = new Set(['duration_ms', 'first_delta_ms', 'execution_time'])

/** `places` are the directories of this conversation. */
export function comparable(events: readonly object[], places: readonly string[]): unknown[] {
  const ids = new Map<string, string>()
  const named = (id: string) => ids.get(id) ?? (ids.set(id, `id-${ids.size}`), ids.get(id)!)
  return events.map((event) => {
    let text = JSON.stringify(event, (name, value: unknown) => {
      if (LEFT_OUT.has(name)) return undefined
      return NUMBERS.has(name) ? 0 : value
    })
    for (const place of places) text = text.replaceAll(place, '/place')
    return JSON.parse(text.replaceAll(TIME, 'time').replaceAll(ID, named))
  })
}
