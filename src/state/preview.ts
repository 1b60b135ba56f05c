/** The beginning of the first message, by which an untitled conversation can be searched. */
import type { EventOf } from '../contract/events/event.ts'
import type { State } from './state-shape.ts'

type Preview = Pick<State, 'preview' | 'previewSeq'>

const PREVIEW_CHARS = 200

/** A message that was withdrawn is not shown; the next one is, then. */
export function previewAfter(state: Preview, event: EventOf<'UserMessage' | 'MessageWithdrawn'>): Preview {
  if (event.type === 'MessageWithdrawn' && event.message_seq === state.previewSeq) return { preview: '', previewSeq: 0 }
  if (event.type === 'UserMessage' && !state.preview) return { preview: previewOf(event), previewSeq: event.seq }
  return { preview: state.preview, previewSeq: state.previewSeq }
}

function previewOf(event: EventOf<'UserMessage'>): string {
  const text = event.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
  // Copy the text: a slice keeps the whole string in memory, and each conversation has a preview.
  return Buffer.from(text.slice(0, PREVIEW_CHARS)).toString()
}
