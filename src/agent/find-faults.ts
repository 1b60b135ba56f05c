/** Checks a request for what providers refuse: it makes no request, and is used where a history is checked. */
import type { LlmRequest } from '../llm/llm.ts'

/** Describes what is invalid in a request; empty if every provider would accept it. */
export function findFaults({ messages }: Pick<LlmRequest, 'messages'>): string[] {
  const faults: string[] = []
  let expectedIds: string[] = []
  messages.forEach((message, at) => {
    const fault = (text: string) => faults.push(`message ${at} (${message.role}): ${text}`)
    if (message.role === 'tool') {
      const expectedId = expectedIds.shift()
      if (expectedId !== message.toolCallId)
        fault(`result of ${message.toolCallId} where ${expectedId ?? 'none'} was expected`)
      if (!message.content.trim()) fault('empty text')
      return
    }
    for (const id of expectedIds) fault(`call ${id} before it has no result`)
    expectedIds = []
    if (at === 0 && message.role !== 'user') fault('the first message is not the user’s')
    if (message.role === 'user' && !message.content.length) fault('no content')
    if (message.role === 'user' && message.content.some((part) => part.type === 'text' && !part.text.trim()))
      fault('empty text')
    if (message.role === 'assistant') {
      if (messages[at - 1]?.role === 'assistant') fault('an answer behind an answer')
      expectedIds = message.toolCalls.map((call) => call.id)
      if (new Set(expectedIds).size < expectedIds.length) fault('two calls share an id')
      if (!message.text.trim() && !expectedIds.length) fault('neither text nor calls')
    }
  })
  for (const id of expectedIds) faults.push(`call ${id} at the end has no result`)
  return faults
}
