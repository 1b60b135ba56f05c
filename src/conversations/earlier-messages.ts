/** Messages from elsewhere, as marked text before the first message of a conversation. The only file that knows the form. */
import type { CreateConversation } from '../contract/conversation.ts'
import { messageOf, partsOf } from '../contract/values/message.ts'

/** `texts`: a message each, with who said it. `droppedCount`: of the oldest, which are left out. */
export function textOfEarlier(texts: readonly string[], droppedCount = 0): string {
  const about = `Earlier messages, as the client has sent them${droppedCount > 0 ? `, without the oldest ${droppedCount}` : ''}:`
  return [`<earlier_messages>\n${about}`, ...texts, '</earlier_messages>'].join('\n\n')
}

/** Returns a message as one of these texts: it cannot end their list. */
export const earlierMessage = (role: string, text: string): string =>
  `${role}: ${text.replaceAll('</earlier_messages>', '<\\/earlier_messages>')}`

/** Returns the request with its history in the first message, so that hooks read it, too. */
export function withHistory({ history, ...request }: CreateConversation): CreateConversation {
  const { initial_message: first } = request
  if (!history || first === undefined) return request
  const message = messageOf(first)
  const text = textOfEarlier(history.map(({ role, content }) => earlierMessage(role, content)))
  return { ...request, initial_message: { ...message, content: [{ type: 'text', text }, ...partsOf(message.content)] } }
}
