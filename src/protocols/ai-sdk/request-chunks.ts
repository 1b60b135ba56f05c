/** The chunks of requests: what waits for a decision or an answer, and how it event. Pure. */
import type { EventOf } from '../../contract/events/event.ts'
import { formatApprovalRef } from './answer-id.ts'
import type { UiChunk, UiRequestData } from './ui-chunk.ts'

type OpenedEvent = EventOf<'RequestOpened'>
type EndEvent = EventOf<'RequestAnswered'> | EventOf<'RequestClosed'>

export class RequestChunks {
  readonly #open = new Map<string, OpenedEvent>()
  readonly #denied = new Set<string>()

  /** True for a call that a client has denied. */
  readonly wasDenied = (toolUseId: string): boolean => this.#denied.has(toolUseId)

  open(request: OpenedEvent): readonly UiChunk[] {
    this.#open.set(request.request_id, request)
    if (request.kind === 'client_tool') return []
    if (request.kind !== 'permission') return [dataOf(request, { status: 'open' })]
    return request.payload.tool_uses.flatMap(({ tool_use_id: toolCallId, name: toolName, input, reason }) => {
      const approvalId = formatApprovalRef(request.request_id, toolCallId)
      const approvalRequest = { type: 'tool-approval-request', approvalId, toolCallId, reason } as const
      if (request.parent_tool_use_id === undefined) return [approvalRequest]
      // The calls of a subagent are shown when they need a decision, and only then.
      const own = { providerExecuted: true, dynamic: true } as const
      return [{ type: 'tool-input-available', toolCallId, toolName, input, ...own } as const, approvalRequest]
    })
  }

  end(event: EndEvent): readonly UiChunk[] {
    const request = this.#open.get(event.request_id)
    if (!request || request.kind === 'client_tool') return []
    if (event.type === 'RequestAnswered' && event.kind === 'permission') return this.#decided(event)
    this.#open.delete(event.request_id)
    if (request.kind === 'permission') return unansweredIn(request, event.tool_use_ids)
    const status = event.type === 'RequestAnswered' ? 'answered' : 'closed'
    return [dataOf(request, { status, ...(event.type === 'RequestAnswered' && { answer: event.answer }) })]
  }

  #decided({
    request_id: requestId,
    answer: { decisions },
    parent_tool_use_id: parent,
  }: Extract<EndEvent, { type: 'RequestAnswered'; kind: 'permission' }>): readonly UiChunk[] {
    return decisions.flatMap(({ tool_use_id: toolCallId, behavior, message }) => {
      const isApproved = behavior === 'allow'
      if (!isApproved) this.#denied.add(toolCallId)
      const response = {
        type: 'tool-approval-response',
        approvalId: formatApprovalRef(requestId, toolCallId),
        approved: isApproved,
        ...(message !== undefined && { reason: message }),
      } as const
      if (parent === undefined) return [response]
      const end = isApproved
        ? ({ type: 'tool-output-available', toolCallId, output: 'Allowed.', providerExecuted: true } as const)
        : ({ type: 'tool-output-denied', toolCallId } as const)
      return [response, end]
    })
  }
}

/** The calls of the main agent have results. */
function unansweredIn({ parent_tool_use_id: parent }: OpenedEvent, toolUseIds: readonly string[]): readonly UiChunk[] {
  if (parent === undefined) return []
  const errorText = 'The request ended without a decision.'
  return toolUseIds.map((toolCallId) => ({ type: 'tool-output-error', toolCallId, errorText, providerExecuted: true }))
}

function dataOf(
  { request_id, kind, payload }: OpenedEvent,
  { status, answer }: Pick<UiRequestData, 'status' | 'answer'>,
): UiChunk {
  const data = { request_id, kind, payload, status, ...(answer !== undefined && { answer }) }
  return { type: 'data-request', id: request_id, data }
}
