/** Searches an event for a text, in its own fields only. */
import type { StoredEvent } from '../../events/event-store.ts'
import { indexOfText } from '../../lib/text/find-text.ts'

/** Envelope and similar fields, which contain no words. */
const ENVELOPE = new Set(['id', 'seq', 'timestamp', 'conversation_id', 'source', 'type', 'version'])

export function createTextSearch(text: string): (stored: StoredEvent) => boolean {
  const wanted = text.toLowerCase()
  // The text as JSON encodes it: if not even that is found, the event need not be parsed.
  const written = JSON.stringify(wanted).slice(1, -1)
  return (stored) => {
    if (indexOfText(stored.json.toLowerCase(), written) < 0) return false
    return Object.entries(stored.event).some(([name, value]) => !ENVELOPE.has(name) && holds(value, wanted))
  }
}

function holds(value: unknown, wanted: string): boolean {
  // Loops instead of callbacks: one stack frame per level, so that everything that could be stored can be searched.
  if (typeof value === 'string') return indexOfText(value.toLowerCase(), wanted) >= 0
  if (typeof value !== 'object' || value === null) return false
  if ('type' in value && value.type === 'image') return false
  for (const item of Object.values(value)) if (holds(item, wanted)) return true
  return false
}
