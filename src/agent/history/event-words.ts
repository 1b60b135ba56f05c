/** The words that the model reads of the events of its history. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ImagePart, UserPart } from '../../contract/values/message.ts'
import { isToReturn, joinReasoning } from '../../contract/values/message.ts'
import type { ModelMessage } from '../../llm/llm.ts'
import type { ListedMessage } from './message-list.ts'
import { boundMessage } from './subagent-message.ts'

/**
 * The text of a slash command replaces the words that called it. Providers refuse text that is only white space; older servers
 * accepted such messages.
 */
export function partsOfUser(event: EventOf<'UserMessage'>): UserPart[] {
  const { content, slash_command: command, context } = event
  const parts: readonly UserPart[] = command ? [{ type: 'text', text: command.text }, ...content.slice(1)] : content
  const sayable = parts.filter((part) => part.type !== 'text' || part.text.trim() !== '')
  if (sayable.length === 0) sayable.push({ type: 'text', text: '[an empty message]' })
  return context === undefined ? sayable : [...sayable, ...contextOf(event)]
}

export const contextOf = ({ context }: { readonly context?: string | undefined }): UserPart[] =>
  context?.trim() ? [{ type: 'text', text: context }] : []

/** Appended as a message: the prompt before it is unchanged, and with it the provider's cache. Undefined if nothing is to be said. */
export function tellChange(
  event: EventOf<'ForkedFrom' | 'ConfigUpdate' | 'Rewound' | 'FilesRestored'>,
): string | undefined {
  switch (event.type) {
    case 'ForkedFrom':
      return event.cwd === event.from_cwd ? undefined : tellMove(event)
    case 'ConfigUpdate':
      return tellDirectoryChange(event)
    case 'Rewound':
      return tellRewind(event)
    case 'FilesRestored':
      return FILES_RESTORED
  }
}

function tellMove({ from_cwd, cwd }: EventOf<'ForkedFrom'>): string {
  return `[This is a copy of an earlier conversation. Your working directory is now ${cwd}, a copy of ${from_cwd}: wherever that was said above, use ${cwd} from here on, and leave ${from_cwd} alone. Shells and background processes of before are gone.]`
}

/** It names no path: one may have been rewound. */
const FILES_RESTORED =
  '[The user has restored the files of your directories to an earlier state. Read them again before you rely on what is said about them above.]'

/** It has no words of what was rewound. */
function tellRewind({ processes_left: processesLeft }: EventOf<'Rewound'>): string {
  const processes =
    processesLeft > 0
      ? ` ${processesLeft} processes that were started in the background since then still run, with their shells.`
      : ''
  return `[The user has taken the conversation back to this point: what came after it is not here any more. Files may have changed since, so read them again before you rely on what is said about them above. Shells have ended with their variables and directories.${processes}]`
}

/** Undefined for a change of other settings. */
function tellDirectoryChange({ changes }: EventOf<'ConfigUpdate'>): string | undefined {
  const { additional_directories: directories } = changes
  if (!Array.isArray(directories)) return undefined
  if (directories.length === 0)
    return '[The user has changed your directories: you may work in no other than your working directory from here on.]'
  return `[The user has changed your directories: besides your working directory, you may read and change files in ${directories.join(', ')} from here on; name them by absolute paths.]`
}

export function repeatImages(images: readonly ImagePart[]): ModelMessage {
  return { role: 'user', content: [{ type: 'text', text: IMAGES_OF_TOOLS }, ...images], repeatsImages: true }
}

export function outputInstruction({ output_schema, fault }: EventOf<'OutputRequest'>): string {
  const wantedForm = 'only with JSON that is valid for the schema, without any other text'
  if (fault !== undefined) return `[Your answer is not valid: ${fault}. Answer again, ${wantedForm}.]`
  return `[When you have finished, answer ${wantedForm}. The JSON Schema is:\n${JSON.stringify(output_schema)}]`
}

const IMAGES_OF_TOOLS = 'Here are the images of the tool results above, in their order.'

type Words = Pick<Extract<ModelMessage, { role: 'assistant' }>, 'text' | 'reasoning' | 'parts'>

export function wordsOf({ text, content }: EventOf<'AssistantMessage'>): Words {
  const reasoning = joinReasoning(content)
  return {
    text: text.trim() === '' ? '' : text,
    ...(reasoning && { reasoning }),
    ...(content.some(isToReturn) && { parts: content }),
  }
}

/** Returns what the main agent reads of a subagent that worked in the background. */
export function tellEnd({ agent_name, stop_reason, interrupted, final_text, ...event }: EventOf<'Result'>): string {
  const finalWords = boundMessage(final_text) || 'It ended without a message.'
  const why = interrupted ? 'the user stopped it' : stop_reason
  return `[The subagent ${agent_name} in the background has ended: ${why}. Its last message follows. The user does not see it.]\n\n${finalWords}\n\n[agent_id: ${event.background_agent_id}]`
}

/** Returns what every agent of the conversation reads. */
export function tellEndOfProcesses({ sessions, processes, command_lines }: EventOf<'ProcessesEnded'>): string {
  const shells = sessions.length > 0 ? ` Your shells have ended: ${sessions.join(', ')}.` : ''
  const lines = command_lines.map((line) => `\n- ${line}`).join('')
  const endedProcesses = processes > 0 ? ` Processes in the background were interrupted (${processes}):${lines}\n` : ' '
  return `[The server that this conversation was on has stopped, and it continues on another one.${shells}${endedProcesses}Start again what you still need.]`
}

/** An answer comes next, and none may follow another one. */
export const isDue = (last: ModelMessage | undefined): boolean => !last || last.role === 'assistant'

// The message that asks the agent to continue, where the model would otherwise read two answers in a row.
const asUser = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const CONTINUE = asUser('Continue.')
const CONTINUE_UNREAD = asUser(
  'Continue. The message before your last answer came while you were writing it: follow it now.',
)

export const isContinue = (message: ModelMessage | undefined): boolean =>
  message === CONTINUE || message === CONTINUE_UNREAD

export const continueAfter = (last: ListedMessage | undefined): ModelMessage =>
  last?.leftUnread ? CONTINUE_UNREAD : CONTINUE
