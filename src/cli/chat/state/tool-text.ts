/** What the result of a tool call says, as text. */
import type { EventOf } from '../../../contract/events/event.ts'
import { outputText } from '../../../contract/events/output-text.ts'

/** Characters kept of a result: the log has all of it. */
const MAX_RESULT_CHARS = 50_000

export function resultOf({ output, error_message, is_error }: EventOf<'ToolResult'>): string {
  const text = outputText(output)
  const whole =
    is_error && error_message !== undefined && !text.includes(error_message) ? `${error_message}\n${text}` : text
  return whole.length > MAX_RESULT_CHARS
    ? `${whole.slice(0, MAX_RESULT_CHARS)}\n[${whole.length - MAX_RESULT_CHARS} more characters are in the log]`
    : whole
}
