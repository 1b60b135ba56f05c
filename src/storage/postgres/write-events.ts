/** Writes the events of a conversation that nobody appends to, in parts: a copy of a log, or an imported one. */
import type { EventRow } from './append-lanes.ts'

/** Characters of events in one statement. */
const CHUNK_CHARS = 1024 * 1024

/**
 * Calls `write` with the columns of each part: seqs, times, types, sources and texts. Returns the last seq, and its Unix
 * time in milliseconds; 0 if there are none.
 */
export async function writeEvents(
  write: (columns: readonly unknown[]) => Promise<unknown>,
  events: AsyncIterable<EventRow>,
): Promise<{ head: number; lastAt: number }> {
  let chunk: EventRow[] = []
  let chars = 0
  let last: EventRow | undefined
  const flush = async () => {
    if (chunk.length === 0) return
    const columns = (['seq', 'at', 'type', 'source', 'json'] as const).map((name) => chunk.map((row) => row[name]))
    await write(columns)
    chunk = []
    chars = 0
  }
  for await (const event of events) {
    chunk.push((last = event))
    chars += event.json.length
    if (chars >= CHUNK_CHARS) await flush()
  }
  await flush()
  return { head: last?.seq ?? 0, lastAt: last?.at ?? 0 }
}
