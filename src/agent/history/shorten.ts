/** Shortens messages that a compaction keeps: tool results and messages of the user. */
import type { UserPart } from '../../contract/values/message.ts'
import type { ModelMessage } from '../../llm/llm.ts'

/** The event that has all of a tool result, and the file with the complete output, if there is one. */
export type ResultPlace = { readonly eventId: string; readonly path: string | undefined }

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>

/** The part of the kept characters that comes from the beginning of the text. */
const HEAD_PART = 0.7

/** A shortened text says how to get the rest. This is about as long as it is. */
const NOTE_CHARS = 300

/** Returns the same message if it is short enough. */
export function shortenResult(message: ToolMessage, { eventId, path }: ResultPlace, maxChars: number): ToolMessage {
  const isLong = message.content.length > maxChars + NOTE_CHARS
  if (!isLong && !message.images) return message
  const { images: _, ...rest } = message
  const place =
    path === undefined
      ? `The whole output is in event ${eventId} of the conversation, which the user can read. If you need it, make the call again.`
      : `The file ${path} has the whole output.`
  return { ...rest, content: isLong ? cutMiddle(message.content, maxChars, place) : message.content }
}

/** Returns the message unchanged if `maxChars` is undefined. */
export function shortenMessage(message: ModelMessage, maxChars: number | undefined): ModelMessage {
  if (maxChars === undefined || message.role !== 'user') return message
  const text = message.content.map((part) => (part.type === 'text' ? part.text : IMAGE)).join('\n\n')
  const hasImages = message.content.some((part) => part.type === 'image')
  if (text.length <= maxChars && !hasImages) return message
  const short = text.length > maxChars ? cutMiddle(text, maxChars, 'The user can send that part again.') : text
  const content: UserPart[] = [{ type: 'text', text: short }]
  return { role: 'user', content }
}

const IMAGE = '[An image was left out to save space.]'

function cutMiddle(text: string, maxChars: number, place: string): string {
  const head = Math.floor(maxChars * HEAD_PART)
  const tail = maxChars - head
  const note = `[${text.length - maxChars} characters were left out here to save space. ${place}]`
  // A cut may halve a character.
  const [begin, end] = [text.slice(0, head).toWellFormed(), text.slice(text.length - tail).toWellFormed()]
  return `${begin}\n${note}\n${end}`
}
