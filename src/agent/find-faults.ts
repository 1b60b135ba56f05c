/** Checks a request for what providers refuse: it makes no request, and is used where a history is checked. */
import type { LlmRequest } from '../llm/llm.ts'

/** Describes what is invalid in a request; empty if every provider would accept it. */
export function findFaults({ messages }: Pick<LlmRequest, 'messages'>): string[] {
  const faults: string[] = []
  let expected: string[] = []
  messages.forEach((message, at) => {
    const fault = (text: string) => faults.push(`message ${at} (${message.role}): ${text}`)
    if (message.role === 'tool') {
      const wanted = expected.shift()
      if (wanted !== message.toolCallId) fault(`result of ${message.toolCallId} where ${wanted ?? 'none'} was expected`)
      if (!message.content.trim()) fault('empty text')
      return
    }
    for (const id of expected) fault(`call ${id} before it has no result`)
    expected = []
    if (at === 0 && message.role !== 'user') fault('the first message is not the user’s')
    if (message.role === 'user' && !message.content.length) fault('no content')
    if (message.role === 'user' && message.content.some((part) => part.type === 'text' && !part.text.trim()))
      fault('empty text')
    if (message.role === 'assistant') {
      if (messages[at - 1]?.role === 'assistant') fault('an answer behind an answer')
      expected = message.toolCalls.map((call) => call.id)
      if (new Set(expected).size < expected.length) fault('two calls share an id')
      if (!message.text.trim() && !expected.length) fault('neither text nor calls')
    }
  })
  for (const id of expected) faults.push(`call ${id} at the end has no result`)
  return faults
}
