/** The short text that says best what a tool call does. */
import { textOf } from '../values/output-text.ts'

/** What these tools read: the agent can send other fields, too, which have no effect. */
const OWN_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Bash', ['command']],
  ['FileEditor', ['command', 'path']],
  ['Read', ['file_path']],
  ['Write', ['file_path']],
  ['Edit', ['file_path']],
  ['MultiEdit', ['file_path']],
  ['Glob', ['pattern']],
  ['Grep', ['pattern']],
  ['WebFetch', ['url']],
  ['WebSearch', ['query']],
  ['Skill', ['skill']],
  ['SlashCommand', ['command']],
  ['Task', ['description']],
])

/** The fields that say best what a call of another tool does, the best first. */
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

export function titleOf(name: string, input: unknown): string {
  const fields = fieldsOfInput(input)
  const ownFields = OWN_FIELDS.get(name)
  const texts = (ownFields ?? TITLE_FIELDS).map((field) => fields[field]).filter((value) => typeof value === 'string')
  if (texts.length > 0 && ownFields) return texts.join(' ')
  const [first] = texts
  if (first === undefined && Array.isArray(fields['questions'])) return questionsIn(fields['questions'])
  if (first === undefined) return isRecord(input) && Object.keys(input).length === 0 ? '' : textOf(input)
  return first
}

const questionsIn = (questions: readonly unknown[]): string =>
  questions.map((each) => textOf(fieldsOfInput(each)['question'] ?? each)).join(' ')
