/** A call that waits for a decision, as text that hides nothing; and as text to edit. */
import type { Approval } from '../state/chat-state.ts'
import { revealText } from '../state/clean-text.ts'
import { diffOfCall } from '../state/diff.ts'
import { fieldsOf } from '../state/tool-text.ts'
import { diffLinesFor } from '../render/diff-lines.ts'
import { wrapped } from '../render/lines.ts'
import type { Theme } from '../render/theme.ts'

/** Everything that the call is, and what `always` would add. */
export function approvalLines({ input, reason, rules }: Approval['call'], width: number, theme: Theme): string[] {
  const fields = fieldsOf(input)
  const diff = diffOfCall(input)
  const { command, ...others } = fields
  const named = typeof command === 'string' ? others : fields
  const rest = Object.entries(named).filter(([name]) => diff?.fields.includes(name) !== true)
  return [
    ...(reason === '' ? [] : wrapped(revealText(reason), width).map(theme.dim)),
    ...(typeof command === 'string' ? wrapped(revealText(command), width, '  $ ', '    ').map(theme.bold) : []),
    ...(Object.keys(fields).length === 0 ? wrapped(revealText(jsonOf(input)), width, '  ') : []),
    ...rest.flatMap(([name, value]) => fieldLines(name, value, width)),
    ...(diff ? diffLinesFor(diff.lines, { width, theme, clean: revealText }) : []),
    ...(rules?.length ? wrapped(`always allows: ${revealText(rules.join(', '))}`, width, '  ').map(theme.dim) : []),
  ]
}

function fieldLines(name: string, value: unknown, width: number): string[] {
  const text = typeof value === 'string' ? value : jsonOf(value)
  return wrapped(revealText(text), width, `  ${revealText(name)}: `, '    ')
}

/** Returns the command of a call, or all of its input as JSON. */
export function editableText({ input }: Approval['call']): string {
  const { command } = fieldsOf(input)
  return typeof command === 'string' && isPlain(command) ? command : jsonOf(input)
}

/** Returns the changed input. Throws if the text is not JSON where it has to be. */
export function editedInput({ input }: Approval['call'], text: string): Record<string, unknown> {
  const fields = fieldsOf(input)
  if (typeof fields['command'] === 'string' && isPlain(fields['command'])) return { ...fields, command: text }
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new Error('The input of a call must be a JSON object.')
  return fieldsOf(parsed)
}

/** The prompt would change anything else. */
const isPlain = (command: string): boolean => revealText(command) === command && command.trim() === command

/** Characters that cannot be seen are written as escapes. */
const jsonOf = (value: unknown): string =>
  (JSON.stringify(value, null, 2) ?? 'nothing').replaceAll(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
