/** The messages of tool calls and their results, as the model reads them. */
import type { EventDraft, EventOf } from '../../contract/events/event.ts'
import type { ImagePart } from '../../contract/values/message.ts'
import { partsOfOutput, textOfParts } from '../../contract/values/output-text.ts'
import type { ModelMessage, ModelToolCall } from '../../llm/llm.ts'

/** Renders a tool's stored output for the model, by the tool's name. */
export type RenderOutput = (toolName: string, output: unknown) => string

/**
 * Shows arguments that were not a JSON object to the model as it sent them, inside valid JSON: some endpoints parse
 * them.
 */
export function toModelCall(event: EventOf<'ToolUse'>): ModelToolCall {
  const input = typeof event.input === 'string' ? { invalid_arguments: event.input } : event.input
  return { id: event.tool_use_id, name: event.name, arguments: JSON.stringify(input ?? {}) }
}

export type ResultDraft = Extract<EventDraft, { type: 'ToolResult' }>

export function toToolMessage(event: ResultDraft, toolName: string, render: RenderOutput): ModelMessage {
  const parts = partsOfOutput(event.output)
  const text = parts ? textOfParts(parts) : render(toolName, event.output)
  const error =
    event.is_error && event.error_message && !text.includes(event.error_message)
      ? `Error: ${event.error_message}\n`
      : ''
  const changedInput =
    event.ran_input === undefined
      ? ''
      : `[${event.changed_by === 'hook' ? 'A hook' : 'The user'} changed this call. What ran is ${JSON.stringify(event.ran_input)}]\n`
  const context = event.context === undefined ? '' : `\n\n${event.context}`
  const advice = event.advice === undefined ? '' : `\n\n[${event.advice}]`
  const content = `${changedInput}${error}${text}`
  const shownContent = content.trim() ? content : content ? '[white space only]' : '[no output]'
  const images = imagesOf(event)
  return {
    role: 'tool',
    toolCallId: event.tool_use_id,
    content: `${shownContent}${context}${advice}`,
    ...(images.length > 0 && { images }),
    ...(event.is_error && { isError: true }),
  }
}

export function imagesOf({ output }: ResultDraft): readonly ImagePart[] {
  return (partsOfOutput(output) ?? []).filter((part) => part.type === 'image')
}
