/** Commands that the person runs with `!`: shown like calls. The model reads a message in the form of Claude Code. */
import type { CommandOutcome } from '../../../contract/values/command.ts'
import type { EventOf } from '../../../contract/events/event.ts'
import type { CallItem, ChatState, Item, LocalEvent } from './chat-state.ts'
import { boundedInput } from './bounded.ts'
import { changeCall } from './items.ts'

/** The name of these calls: no tool has it. */
export const SHELL_MARK = '!'

const INTRODUCTION = 'I have run this command myself, in your shell. You need not answer this.'
/** The marks of the message, in order. */
const MARKS = [
  `${INTRODUCTION}\n<bash-input>`,
  '</bash-input>\n<bash-stdout>',
  '</bash-stdout><bash-stderr>',
  '</bash-stderr>\n',
] as const

type ShownOutput = Pick<CommandOutcome, 'stdout' | 'stderr'> & { readonly end: string }

/** The message for the model. */
export function messageOfCommand(command: string, outcome: CommandOutcome): string {
  const { stdout, stderr, end } = shownOf(outcome)
  return [command, stdout, stderr].reduce((text, part, at) => text + part + MARKS[at + 1], MARKS[0]) + end
}

/** Returns what is between the marks; undefined for any other message. */
function partsOfMessage(text: string): string[] | undefined {
  if (!text.startsWith(MARKS[0])) return undefined
  const parts: string[] = []
  let rest = text.slice(MARKS[0].length)
  for (const mark of MARKS.slice(1)) {
    const at = rest.indexOf(mark)
    if (at < 0) return undefined
    parts.push(rest.slice(0, at))
    rest = rest.slice(at + mark.length)
  }
  return [...parts, rest]
}

export const shownOf = ({ stdout, stderr, status, exit_code, killed_by }: CommandOutcome): ShownOutput => ({
  stdout,
  stderr,
  end: status === 'exited' ? `exit code ${exit_code}` : `${status}${killed_by ? ` (${killed_by})` : ''}`,
})

export const startCommand = (state: ChatState, { key, command }: LocalOf<'CommandStarted'>): ChatState =>
  changeCall(state, key, (call) => ({ ...call, name: SHELL_MARK, input: { command } }), SHELL_MARK)

export const endCommand = (state: ChatState, { key, shown, id }: LocalOf<'CommandEnded'>): ChatState =>
  changeCall(state, key, (call) => ({ ...withResult(call, shown), ...(id !== undefined && { commandId: id }) }))

/** Returns undefined for any other message. */
export function addCommandMessage(state: ChatState, text: string, key = ''): ChatState | undefined {
  const [command, stdout = '', stderr = '', end = ''] = partsOfMessage(text) ?? []
  if (command === undefined) return undefined
  if (state.items.some((item) => item.kind === 'call' && item.id === key)) return state
  const input = boundedInput({ command })
  const call: CallItem = { kind: 'call', id: key, name: SHELL_MARK, input, written: 0, output: '' }
  // A conversation that is read again has the end of the command first.
  const notice = state.items.findLastIndex((item) => item.kind === 'notice' && item.command === command)
  const items = notice < 0 ? state.items : state.items.toSpliced(notice, 1)
  return { ...state, items: [...items, withResult(call, { stdout, stderr, end })] }
}

/** A message as the person has typed it: its beginning is enough. */
export function typedMessage(text: string): string {
  if (!text.startsWith(MARKS[0])) return text
  const [command = ''] = text.slice(MARKS[0].length).split(MARKS[1])
  return `${SHELL_MARK} ${command}`
}

/** Returns true if the transcript shows the command of this event already. */
export const isShownCommand = ({ items }: ChatState, event: EventOf<'CommandResult'>): boolean =>
  items.some((item) => isCommand(item) && (item.commandId === event.command_id || isRunning(item, event.command)))

export const runningCommand = ({ items }: ChatState): CallItem | undefined =>
  items.findLast((item): item is CallItem => isCommand(item) && !item.result)

const isCommand = (item: Item): item is CallItem => item.kind === 'call' && item.name === SHELL_MARK

const isRunning = ({ input, result }: CallItem, command: string): boolean =>
  !result && typeof input === 'object' && input !== null && 'command' in input && input.command === command

type LocalOf<T extends LocalEvent['type']> = Extract<LocalEvent, { type: T }>

function withResult(call: CallItem, { stdout, stderr, end }: ShownOutput): CallItem {
  const isError = end !== 'exit code 0'
  const texts = [stdout.trimEnd(), stderr.trimEnd(), isError ? end : ''].filter((text) => text !== '')
  return { ...call, output: '', result: { text: texts.join('\n'), isError, durationMs: 0 } }
}
