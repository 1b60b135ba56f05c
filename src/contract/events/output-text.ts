/** The output of a tool as a person reads it: text, the two outputs of a command, or the list of tasks. */
import { partsOfOutput, textOfParts } from '../values/message.ts'

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
