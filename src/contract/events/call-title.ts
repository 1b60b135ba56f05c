/** The short text that says best what a tool call does. */
import { textOf } from './output-text.ts'

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

export function fieldsOfInput(input: unknown): Record<string, unknown> {
  return isRecord(input) ? input : {}
}

export function titleOf(input: unknown): string {
  const fields = fieldsOfInput(input)
  const texts = TITLE_FIELDS.map((name) => fields[name]).filter((value) => typeof value === 'string')
  const [first, second] = texts
  if (first === undefined && Array.isArray(fields['questions'])) return questionsIn(fields['questions'])
  if (first === undefined) return isRecord(input) && Object.keys(input).length === 0 ? '' : textOf(input)
  // An editor has both: what to do, and where.
  return typeof fields['path'] === 'string' && typeof fields['command'] === 'string'
    ? `${first} ${second ?? ''}`
    : first
}

const questionsIn = (questions: readonly unknown[]): string =>
  questions.map((each) => textOf(fieldsOfInput(each)['question'] ?? each)).join(' ')
