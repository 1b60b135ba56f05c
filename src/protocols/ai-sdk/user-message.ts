/** Messages of the user in the form of this protocol. */
import type { EventOf } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { UiInputPart } from './ui-chunk.ts'

/** The keys of clients have no space. */
const KEY_FORM = /^ai-sdk (\S+) \S+$/

/** What the log has with a message, so that its id is known again. `unique`: any text without a space. */
export const formatMessageKey = (id: string, unique: string): string => `ai-sdk ${id} ${unique}`

type Message = EventOf<'UserMessage'>

/** The id that the client gave, or that of the event. */
export const userMessageId = ({ id, idempotency_key: key }: Message): string => KEY_FORM.exec(key ?? '')?.[1] ?? id

export const inputPartsOf = (content: readonly UserPart[]): readonly UiInputPart[] =>
  content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'file', mediaType: part.media_type, url: `data:${part.media_type};base64,${part.data}` },
  )
