/** The items that a response answers, from the log. */
import type { Event } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { EventLog } from '../../events/event-log.ts'
import { textOf } from '../../contract/values/output-text.ts'
import { formatCallId } from './call-id.ts'
import { approvalId, plainUuid } from './response-id.ts'

type InputItem = { readonly id: string; readonly [field: string]: unknown }

const INPUT: ReadonlySet<string> = new Set(['UserMessage', 'RequestAnswered'])
const MAX_ANSWERS = 1000

/** Returns the items before the first answer of the model. */
export async function inputItems(log: EventLog, start: number): Promise<InputItem[]> {
  const { events: answers } = await log.read({ afterSeq: start - 1, types: new Set(['AssistantMessage']), limit: 1 })
  const beforeSeq = answers[0]?.seq ?? log.head + 1
  const { events } = await log.read({ afterSeq: start - 1, beforeSeq, types: INPUT, limit: MAX_ANSWERS })
  return events.flatMap(({ event }) => itemsOfInput(event))
}

/** The items of a message of the user, or of answers to what waited. */
export function itemsOfInput(event: Event): InputItem[] {
  if (event.type === 'UserMessage')
    return [
      {
        type: 'message',
        id: `msg_${plainUuid(event.id)}`,
        role: 'user',
        status: 'completed',
        content: event.content.map(contentOf),
      },
    ]
  if (event.type !== 'RequestAnswered') return []
  if (event.kind === 'client_tool')
    return event.tool_use_ids.map((toolUseId) => {
      return {
        type: 'function_call_output',
        id: `fco_${toolUseId}`,
        call_id: formatCallId({ conversationId: event.conversation_id, toolUseId }),
        output: textOf(event.answer.output),
        status: 'completed',
      }
    })
  if (event.kind !== 'permission') return []
  return event.answer.decisions.map(({ tool_use_id, behavior, message }) => ({
    type: 'mcp_approval_response',
    id: `mcpa_${tool_use_id}`,
    approval_request_id: approvalId({
      conversationId: event.conversation_id,
      requestId: event.request_id,
      toolUseId: tool_use_id,
    }),
    approve: behavior === 'allow',
    reason: message ?? null,
  }))
}

const contentOf = (part: UserPart): object =>
  part.type === 'text'
    ? { type: 'input_text', text: part.text }
    : { type: 'input_image', detail: 'auto', image_url: `data:${part.media_type};base64,${part.data}` }
