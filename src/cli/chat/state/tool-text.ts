/** Tool calls as text: a short title, and what a result says. */
import type { EventOf } from '../../../contract/events/event.ts'
import { partsOfOutput, textOfParts } from '../../../contract/message.ts'

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
  const text = textOfOutput(output)
  const whole =
    is_error && error_message !== undefined && !text.includes(error_message) ? `${error_message}\n${text}` : text
  return whole.length > MAX_RESULT_CHARS
    ? `${whole.slice(0, MAX_RESULT_CHARS)}\n[${whole.length - MAX_RESULT_CHARS} more characters are in the log]`
    : whole
}

function textOfOutput(output: unknown): string {
  if (output === undefined || output === null) return ''
  const { stdout, stderr, exit_code: code, task_list: tasks } = fieldsOf(output)
  if (Array.isArray(tasks)) return tasks.map(taskLine).join('\n')
  if (typeof stdout !== 'string') return textOf(output)
  const texts = [
    stdout,
    typeof stderr === 'string' ? stderr : '',
    typeof code === 'number' && code !== 0 ? `exit code ${code}` : '',
  ]
  return texts
    .map((text) => text.trimEnd())
    .filter((text) => text !== '')
    .join('\n')
}

const TASK_MARKS: Readonly<Record<string, string>> = { todo: '[ ]', in_progress: '[>]', done: '[x]' }

function taskLine(task: unknown): string {
  const { title, status } = fieldsOf(task)
  return `${TASK_MARKS[String(status)] ?? '[?]'} ${textOf(title)}`
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const parts = partsOfOutput(value)
  return parts ? textOfParts(parts) : (JSON.stringify(value) ?? '')
}
