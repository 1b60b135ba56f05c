/** The texts by which lists show a conversation: the beginnings of its first message and of its newest result. */
import type { EventOf } from '../contract/events/event.ts'

type Preview = { readonly preview: string; readonly previewSeq: number }

/** Copy what is cut: a slice keeps the whole string in memory, and each conversation has these texts. */
export const PREVIEW_CHARS = 200

/** A message that was withdrawn is not shown; the next one is, then. */
export function previewAfter(state: Preview, event: EventOf<'UserMessage' | 'MessageWithdrawn'>): Preview {
  if (event.type === 'MessageWithdrawn' && event.message_seq === state.previewSeq) return { preview: '', previewSeq: 0 }
  if (event.type !== 'UserMessage' || state.preview) return { preview: state.preview, previewSeq: state.previewSeq }
  const texts = event.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return { preview: Buffer.from(texts.join(' ').slice(0, PREVIEW_CHARS)).toString(), previewSeq: event.seq }
}
