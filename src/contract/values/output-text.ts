/** The output of a tool as a person reads it: text, the two outputs of a command, or the list of tasks. */
import type { UserPart } from './message.ts'

/** Characters kept of a result: the log has all of it. */
const MAX_RESULT_CHARS = 50_000

type ToolOutput = {
  readonly output?: unknown
  readonly error_message?: string | undefined
  readonly is_error: boolean
}

/** What the result of a tool call says, as text. */
export function resultOf({ output, error_message, is_error }: ToolOutput): string {
  const text = outputText(output)
  const whole =
    is_error && error_message !== undefined && !text.includes(error_message) ? `${error_message}\n${text}` : text
  return whole.length > MAX_RESULT_CHARS
    ? `${whole.slice(0, MAX_RESULT_CHARS)}\n[${whole.length - MAX_RESULT_CHARS} more characters are in the log]`
    : whole
}

/** Returns an empty text for an output without text. */
export function outputText(output: unknown): string {
  if (output === undefined || output === null) return ''
  const { stdout, stderr, exit_code: code, task_list: tasks }: Readonly<Record<string, unknown>> = Object(output)
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
  const { title, status }: Readonly<Record<string, unknown>> = Object(task)
  return `${TASK_MARKS[String(status)] ?? '[?]'} ${textOf(title)}`
}

/** JSON for what is neither text nor parts of text. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const parts = partsOfOutput(value)
  return parts ? textOfParts(parts) : (JSON.stringify(value) ?? '')
}

/** Returns the parts of a tool's output; undefined for an output of another form. */
export function partsOfOutput(output: unknown): readonly UserPart[] | undefined {
  return Array.isArray(output) && output.length > 0 && output.every(isPart) ? output : undefined
}

/** Checks the form only: validating megabytes of base64 on each read would cost too much. */
function isPart(value: unknown): value is UserPart {
  if (typeof value !== 'object' || value === null) return false
  const { type, text, media_type, data }: Readonly<Record<string, unknown>> = { ...value }
  return type === 'text'
    ? typeof text === 'string'
    : type === 'image' && typeof media_type === 'string' && typeof data === 'string'
}

/** Returns the parts as text: images are named. */
export function textOfParts(parts: readonly UserPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[image: ${part.media_type}]`)).join('\n')
}

/** Returns the most relevant part of a call's input: its command, if any, with its path, otherwise all of it. */
export function inputText(input: unknown): string {
  const { command, path } =
    typeof input === 'object' && input !== null ? (input as { command?: unknown; path?: unknown }) : {}
  if (typeof command !== 'string') return textOf(input)
  return typeof path === 'string' ? `${command} ${path}` : command
}
