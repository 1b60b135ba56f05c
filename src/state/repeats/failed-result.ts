/** When the result of a tool call counts as failed. */
import type { EventOf } from '../../contract/events/event.ts'

type Result = Pick<EventOf<'ToolResult'>, 'output' | 'is_error' | 'error_type'>

/** Error types that say nothing about the call itself. What rules deny has failed: they will deny it again. */
const STOPPED = new Set<EventOf<'ToolResult'>['error_type']>(['interrupted', 'rejected'])

/** Includes a command with a non-zero exit code, which is not an error of its tool. */
export function hasFailed({ is_error, error_type, output }: Result): boolean {
  if (is_error) return !STOPPED.has(error_type)
  const { exit_code } = fieldsOf(output)
  return typeof exit_code === 'number' && exit_code !== 0
}

type CommandFields = { readonly exit_code?: unknown }

function fieldsOf(output: unknown): CommandFields {
  return typeof output === 'object' && output !== null ? output : {}
}
