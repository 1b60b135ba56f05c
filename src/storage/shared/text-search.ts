/** Searches an event for a text, in its own fields only. */
import type { StoredEvent } from '../../events/event-store.ts'
import { indexOfText } from '../../lib/text/find-text.ts'

/** Envelope and similar fields, which contain no words. */
const ENVELOPE = new Set(['id', 'seq', 'timestamp', 'conversation_id', 'source', 'type', 'version'])

export function createTextSearch(text: string): (stored: StoredEvent) => boolean {
  const wantedText = text.toLowerCase()
  // The text as JSON encodes it: if not even that is found, the event need not be parsed.
  const writtenText = JSON.stringify(wantedText).slice(1, -1)
  return (storedEvent) => {
    if (indexOfText(storedEvent.json.toLowerCase(), writtenText) < 0) return false
    return Object.entries(storedEvent.event).some(([name, value]) => !ENVELOPE.has(name) && holds(value, wantedText))
  }
}

function holds(value: unknown, wantedText: string): boolean {
  // Loops instead of callbacks: one stack frame per level, so that everything that could be stored can be searched.
  if (typeof value === 'string') return indexOfText(value.toLowerCase(), wantedText) >= 0
  if (typeof value !== 'object' || value === null) return false
  if ('type' in value && value.type === 'image') return false
  for (const item of Object.values(value)) if (holds(item, wantedText)) return true
  return false
}
