/** Events of which only the transcript tells: the line of each, or the reason why it has none. */
import { describeEvent } from '../../../contract/events/describe-event.ts'
import type { EventOf } from '../../../contract/events/event.ts'
import type { ChatState } from './chat-state.ts'
import { add, addNotice } from './items.ts'
import { isShownCommand } from './shell-command.ts'

type LinedEvent = EventOf<
  | 'SystemInit'
  | 'SubagentStart'
  | 'ForkedFrom'
  | 'SecretsUpdate'
  | 'FileUpdate'
  | 'FilesRestored'
  | 'CommandResult'
  | 'ProcessesEnded'
  | 'TaskUpdate'
  | 'NetworkAccess'
  | 'OutputRequest'
  | 'HookEvent'
  | 'McpServerUpdate'
  | 'ClientEvent'
  | 'ErrorEvent'
>

/** A new type of event does not compile without a case, here or in `reduce.ts`. */
export function addLine(state: ChatState, event: LinedEvent): ChatState {
  const line = (tone: 'info' | 'warning') => addNotice(state, tone, describeEvent(event))
  switch (event.type) {
    case 'SubagentStart':
    case 'ForkedFrom':
    case 'SecretsUpdate':
    case 'FileUpdate':
    case 'FilesRestored':
    case 'ProcessesEnded':
      return line('info')
    case 'CommandResult':
      if (isShownCommand(state, event)) return state
      return add(state, { kind: 'notice', tone: 'info', text: describeEvent(event), command: event.command })
    case 'TaskUpdate':
      return event.progress === undefined ? line('info') : state
    case 'NetworkAccess':
      return event.allowed ? state : line('warning')
    case 'OutputRequest':
      return event.fault === undefined ? state : line('warning')
    case 'HookEvent':
      if (event.action !== 'continue') return line('warning')
      return event.message === undefined ? state : line('info')
    case 'McpServerUpdate':
      return event.error === undefined && event.authorization_url === undefined ? state : line('warning')
    case 'ErrorEvent':
      return addNotice(state, 'error', event.message)
    case 'SystemInit': // the first lines of the chat say what is in it
    case 'ClientEvent': // for programs; the agent does not read it either
      return state
    default:
      event satisfies never
      return state // of a later version
  }
}
