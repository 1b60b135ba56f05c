/** The earlier messages that a client sends to a conversation that has none, as marked and bounded text before the last one. */
import type { UserPart } from '../../contract/values/message.ts'
import { earlierMessage, textOfEarlier } from '../../conversations/earlier-messages.ts'

/** `calls`: how an earlier answer called functions, as text. */
export type ChatMessage = {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly UserPart[]
  readonly calls: readonly string[]
}

const MAX_CHARS = 128 * 1024
const MAX_IMAGES = 20

/** If they do not fit, the oldest are left out. */
export function importOf(before: readonly ChatMessage[]): UserPart[] {
  if (before.length === 0) return []
  const keptTexts: string[] = []
  let room = MAX_CHARS
  for (const message of before.toReversed()) {
    const text = textOf(message)
    // The newest one keeps its end.
    if (text.length > room && keptTexts.length > 0) break
    keptTexts.unshift(text.slice(-MAX_CHARS).toWellFormed())
    room -= text.length
  }
  const droppedCount = before.length - keptTexts.length
  const images = before.flatMap(({ parts }) => parts.filter(({ type }) => type === 'image')).slice(-MAX_IMAGES)
  return [{ type: 'text', text: textOfEarlier(keptTexts, droppedCount) }, ...images]
}

function textOf({ role, parts, calls }: ChatMessage): string {
  const texts = [...parts.map(textIn), ...calls.map((call) => `(called ${call})`)]
  return earlierMessage(role, texts.join('\n'))
}

export const textIn = (part: UserPart): string => (part.type === 'text' ? part.text : '[image]')
