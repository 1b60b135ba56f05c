/** What clients run in a conversation: their commands, the processes, and the shell sessions. */
import type { ClientCommands } from './client-commands.ts'
import type { ConversationProcesses } from './conversation-processes.ts'
import type { ConversationShells } from './conversation-shells.ts'

/** What clients run in a conversation, in addition to its agent. */
export type ClientExec = {
  readonly commands: ClientCommands
  readonly processes: ConversationProcesses
  readonly shells: Pick<ConversationShells, 'list' | 'end'>
}
