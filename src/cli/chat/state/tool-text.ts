/** Tool calls as text: a short title, and what a result says. */
import type { EventOf } from '../../../contract/events/event.ts'
import { outputText, textOf } from '../../../contract/events/output-text.ts'

/** Characters kept of a result: the log has all of it. */
const MAX_RESULT_CHARS = 50_000

/** The fields that say best what a call does, the best first. */
const TITLE_FIELDS = [
  'command',
  'file_path',
  'path',
  'pattern',
  'url',
  'query',
  'skill',
  'name',
  'description',
  'prompt',
]

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function fieldsOf(input: unknown): Record<string, unknown> {
  return isRecord(input) ? input : {}
}

export function titleOf(input: unknown): string {
  const fields = fieldsOf(input)
  const texts = TITLE_FIELDS.map((name) => fields[name]).filter((value) => typeof value === 'string')
  const [first, second] = texts
  if (first === undefined) return isRecord(input) && Object.keys(input).length === 0 ? '' : textOf(input)
  // An editor has both: what to do, and where.
  return typeof fields['path'] === 'string' && typeof fields['command'] === 'string'
    ? `${first} ${second ?? ''}`
    : first
}

export function resultOf({ output, error_message, is_error }: EventOf<'ToolResult'>): string {
  const text = outputText(output)
  const whole =
    is_error && error_message !== undefined && !text.includes(error_message) ? `${error_message}\n${text}` : text
  return whole.length > MAX_RESULT_CHARS
    ? `${whole.slice(0, MAX_RESULT_CHARS)}\n[${whole.length - MAX_RESULT_CHARS} more characters are in the log]`
    : whole
}
