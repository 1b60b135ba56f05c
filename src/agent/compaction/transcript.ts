/** A conversation as a text of bounded length, for a model that reads it in one message. */
import type { ModelMessage } from '../../llm/llm.ts'

/** The length of a single message or tool result. */
const MAX_PART_CHARS = 4000

/** The first part says what the work is, so it stays; it gets at most this part of the text. */
const FIRST_PART = 0.2

/** Returns the messages as texts, at most about so many characters in all; the oldest are left out first. */
export function partsOfText(messages: readonly ModelMessage[], maxChars: number): string[] {
  const [first, ...rest] = messages.map(textOf)
  if (first === undefined) return []
  const begin = cutText(first, Math.max(Math.floor(maxChars * FIRST_PART), 1))
  let remainingChars = maxChars - begin.length
  const keptTexts: string[] = []
  for (const text of rest.toReversed()) {
    const part = cutText(text, keptTexts.length === 0 ? Math.min(MAX_PART_CHARS, remainingChars) : MAX_PART_CHARS)
    remainingChars -= part.length
    if (remainingChars < 0) break
    keptTexts.unshift(part)
  }
  return keptTexts.length < rest.length ? [begin, '[Earlier turns are left out.]', ...keptTexts] : [begin, ...keptTexts]
}

function textOf(message: ModelMessage): string {
  switch (message.role) {
    case 'user':
      return `User: ${message.content.map((part) => (part.type === 'text' ? part.text : '[an image]')).join('\n')}`
    case 'assistant': {
      const calls = message.toolCalls.map(
        (call) => `Agent calls ${call.name} with ${cutText(call.arguments, MAX_PART_CHARS / 4)}`,
      )
      return [...(message.text ? [`Agent: ${message.text}`] : []), ...calls].join('\n')
    }
    case 'tool':
      return `Result${message.isError ? ' (an error)' : ''}: ${message.content}`
  }
}

function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  const half = Math.max(Math.floor(maxChars / 2), 0)
  return `${text.slice(0, half).toWellFormed()} […] ${text.slice(text.length - half).toWellFormed()}`
}
