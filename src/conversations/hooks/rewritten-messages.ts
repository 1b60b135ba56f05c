/** Messages as hooks see and rewrite them, and as the model client gets them. */
import { z } from 'zod'
import { findFaults } from '../../agent/find-faults.ts'
import { UserPart } from '../../contract/values/message.ts'
import type { LlmAnswer, ModelMessage } from '../../llm/llm.ts'

const Call = z.object({ id: z.string().min(1), name: z.string().min(1), arguments: z.string() })

const Message = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: z.union([z.string(), z.array(UserPart)]) }),
  z.object({
    role: z.literal('assistant'),
    content: z.string().default(''),
    tool_calls: z.array(Call).default([]),
    reasoning: z.string().optional(),
  }),
  z.object({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
])

/** The form of the payload. */
export function shownMessages(messages: readonly ModelMessage[]): z.input<typeof Message>[] {
  return messages.map((message) => {
    switch (message.role) {
      case 'user':
        return { role: 'user', content: [...message.content] }
      case 'assistant': {
        const { text, toolCalls, reasoning } = message
        return { role: 'assistant', content: text, tool_calls: [...toolCalls], ...(reasoning && { reasoning }) }
      }
      case 'tool':
        return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
      default:
        return message satisfies never
    }
  })
}

/** Returns why a provider would refuse them, as a clause. */
export function readMessages(value: unknown): readonly ModelMessage[] | { readonly fault: string } {
  const parseResult = z.array(Message).min(1).safeParse(value)
  if (!parseResult.success) {
    const { path = [], message = '' } = parseResult.error.issues[0] ?? {}
    return { fault: `updatedMessages.${path.join('.')}: ${message}` }
  }
  const messages = parseResult.data.map(toModelMessage)
  const [fault] = findFaults({ messages })
  return fault === undefined ? messages : { fault: `updatedMessages: ${fault}` }
}

function toModelMessage(message: z.infer<typeof Message>): ModelMessage {
  switch (message.role) {
    case 'user': {
      const { content } = message
      return { role: 'user', content: typeof content === 'string' ? [{ type: 'text', text: content }] : content }
    }
    case 'assistant': {
      const { content, tool_calls: toolCalls, reasoning } = message
      return { role: 'assistant', text: content, toolCalls, ...(reasoning && { reasoning }) }
    }
    case 'tool':
      return { role: 'tool', toolCallId: message.tool_call_id, content: message.content }
    default:
      return message satisfies never
  }
}

/** The answer in the payload of `PostModelCall`. */
export const shownAnswer = ({ text, reasoning, toolCalls, usage, stopReason }: LlmAnswer) => ({
  text,
  ...(reasoning && { reasoning }),
  tool_calls: toolCalls,
  usage,
  stop_reason: stopReason,
})
