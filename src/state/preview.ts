/** The beginning of a message, by which an untitled conversation can be searched. */
import type { EventOf } from '../contract/events/event.ts'

const PREVIEW_CHARS = 200

export function previewOf(event: EventOf<'UserMessage'>): string {
  const text = event.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
  // Copy the text: a slice keeps the whole string in memory, and each conversation has a preview.
  return Buffer.from(text.slice(0, PREVIEW_CHARS)).toString()
}
