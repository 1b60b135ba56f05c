/** The object of a response, with what the request said of it. */
import type { ResponseOutputItem } from 'openai/resources/responses/responses'
import type { Conversation } from '../../conversations/conversation.ts'
import type { ResponseBuilder } from './response-builder.ts'
import type { ResponseEnd } from './response-end.ts'
import { modelOf } from './models.ts'
import { formatConversationId } from './response-id.ts'
import type { ResponseId } from './response-id.ts'
import type { RunOptionsInLog } from './run-of-turn.ts'
import { optionsOfTurn } from './run-of-turn.ts'

/** What a request said and the log does not have. */
export type Echo = {
  readonly metadata?: unknown
  readonly previous_response_id?: string | null
  readonly tools?: unknown
  readonly text?: unknown
  readonly store?: unknown
  readonly [field: string]: unknown
}

export type ResponseObject = {
  readonly id: string
  readonly object: 'response'
  readonly status: ResponseEnd['status'] | 'in_progress'
  readonly output: readonly ResponseOutputItem[]
  readonly [field: string]: unknown
}

type Parts = {
  readonly id: string
  readonly responseId: ResponseId
  readonly conversation: Conversation
  readonly builder: ResponseBuilder
  readonly echo: Echo
}

export async function responseObject({ id, responseId, conversation, builder, echo }: Parts): Promise<ResponseObject> {
  const { log, state } = conversation
  const { settings } = state
  const { events } = await log.read({ afterSeq: responseId.start - 1, limit: 1 })
  const began = Date.parse(events[0]?.event.timestamp ?? state.createdAt)
  const { end } = builder
  const options = await optionsOfTurn(log, responseId.start)
  const tools = (settings.client_tools ?? []).map(({ name, description, input_schema: parameters }) => {
    return { type: 'function', name, description, parameters, strict: false }
  })
  const metadata: Record<string, unknown> = Object(echo.metadata ?? settings.metadata ?? {})
  return {
    id,
    object: 'response',
    created_at: Math.floor(began / 1000),
    status: end?.status ?? 'in_progress',
    background: responseId.isBackground,
    conversation: responseId.isOfConversation ? { id: formatConversationId(responseId.conversationId) } : null,
    error: end?.error ?? null,
    incomplete_details: end?.incomplete_details ?? null,
    instructions: options.instructions ?? null,
    max_output_tokens: options.max_output_tokens ?? null,
    max_tool_calls: echo['max_tool_calls'] ?? null,
    metadata: { ...metadata, ...(end?.stopReason !== undefined && { stop_reason: end.stopReason }) },
    model: modelOf(conversation),
    output: [...builder.output],
    parallel_tool_calls: echo['parallel_tool_calls'] ?? true,
    previous_response_id: echo.previous_response_id ?? null,
    reasoning: { effort: options.reasoning_effort ?? null, summary: null },
    service_tier: 'default',
    store: echo.store ?? true,
    temperature: options.temperature ?? null,
    text: echo.text ?? { format: formatOf(options) },
    tool_choice: options.tool_choice ?? 'auto',
    tools: echo.tools ?? tools,
    top_p: echo['top_p'] ?? null,
    truncation: 'disabled',
    usage: end ? usageOf(builder) : null,
    user: null,
  }
}

/** The name of the schema is not in the log. */
const formatOf = ({ output_schema: schema }: RunOptionsInLog) =>
  schema ? { type: 'json_schema', name: 'response', schema, strict: false } : { type: 'text' }

function usageOf({ usage }: ResponseBuilder): object {
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage
  return {
    input_tokens,
    input_tokens_details: { cached_tokens },
    output_tokens,
    output_tokens_details: { reasoning_tokens },
    total_tokens: input_tokens + output_tokens,
  }
}
