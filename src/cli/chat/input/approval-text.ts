/** A call that waits for a decision, as text that hides nothing; and as text to edit. */
import type { Approval } from '../state/chat-state.ts'
import { revealLine, revealText, UNSEEN } from '../state/clean-text.ts'
import { diffOfCall } from '../state/diff.ts'
import type { Starts } from '../state/diff-numbers.ts'
import { numberedLines } from '../state/diff-numbers.ts'
import { fieldsOfInput } from '../../../contract/events/call-title.ts'
import { diffLinesFor } from '../render/diff-lines.ts'
import { exactLines } from '../render/lines.ts'
import type { Theme } from '../render/theme.ts'

/** The prompt lays out all of its text for each key. */
const MAX_EDITED_CHARS = 20_000

/** Everything that the call is, and what `always` would add. */
export function approvalLines(
  { input, reason, rules }: Approval['call'],
  { width, theme, starts }: { width: number; theme: Theme; starts?: Starts | undefined },
): string[] {
  const fields = fieldsOfInput(input)
  const diff = diffOfCall(input)
  const { command, ...others } = fields
  const namedFields = typeof command === 'string' ? others : fields
  const rest = Object.entries(namedFields).filter(([name]) => diff?.fields.includes(name) !== true)
  const exact = (text: string, first: string, next: string) => exactLines(revealText(text), width, first, next)
  return [
    ...(reason === '' ? [] : exact(reason, '', '').map(theme.dim)),
    ...(typeof command === 'string' ? exact(command, '  $ ', '    ').map(theme.bold) : []),
    ...(Object.keys(fields).length === 0 ? exact(jsonOf(input), '  ', '    ') : []),
    ...rest.flatMap(([name, value]) =>
      exactLines(`${revealLine(name)}: ${revealText(textOfField(value))}`, width, '  ', '    '),
    ),
    ...(diff ? diffLinesFor(numberedLines(input, starts), { width, theme, clean: revealText }) : []),
    ...(rules?.length ? exact(`always allows: ${rules.join(', ')}`, '  ', '    ').map(theme.dim) : []),
  ]
}

const textOfField = (value: unknown): string => (typeof value === 'string' ? value : jsonOf(value))

/** Returns the command of a call, or all of its input as JSON. Throws if that is too long for the prompt. */
export function editableText({ input }: Approval['call']): string {
  const { command } = fieldsOfInput(input)
  const text = typeof command === 'string' && isPlain(command) ? command : jsonOf(input)
  if (text.length <= MAX_EDITED_CHARS) return text
  throw new Error(
    `The input is too long to be edited here (${text.length} characters). A message denies the call, and says what to change.`,
  )
}

/** Returns the changed input. Throws if the text is not JSON where it has to be. */
export function editedInput({ input }: Approval['call'], text: string): Record<string, unknown> {
  const fields = fieldsOfInput(input)
  if (typeof fields['command'] === 'string' && isPlain(fields['command'])) return { ...fields, command: text }
  const parsedInput: unknown = JSON.parse(text)
  if (typeof parsedInput !== 'object' || parsedInput === null || Array.isArray(parsedInput))
    throw new Error('The input of a call must be a JSON object.')
  return fieldsOfInput(parsedInput)
}

/** The prompt would change anything else: it replaces marks of pastes by what was pasted. */
const isPlain = (command: string): boolean =>
  revealText(command) === command && command.trim() === command && !command.includes('[paste #')

/** Characters that cannot be seen are written as escapes. */
const jsonOf = (value: unknown): string =>
  (JSON.stringify(value, null, 2) ?? 'nothing')
    .replaceAll('[paste #', '[paste \\u0023')
    .replaceAll(UNSEEN, (character) => (character === '\n' ? character : character.split('').map(escapeOf).join('')))

const escapeOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
