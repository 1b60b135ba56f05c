/**
 * What the command line hands to the interactive chat, which is loaded only when it is needed: `startChat` of
 * `chat/start-chat.ts` is a `StartChat`.
 */
import type { AgentServerClient } from '../client/client.ts'
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import type { Info } from '../contract/server.ts'
import type { ConversationView } from '../contract/conversation.ts'
import type { UserInput } from '../contract/message.ts'
import type { PermissionMode } from '../contract/permission.ts'

export type ChatOptions = {
  readonly client: AgentServerClient
  /** The conversation to begin with: created just now, or resumed with its events. */
  readonly conversation: ConversationHandle
  readonly view: ConversationView
  readonly isResumed: boolean
  /** Creates another conversation with the same flags and settings, in the same directory. */
  readonly createConversation: () => Promise<ConversationView>
  /** Where commands run and which tools there are: `isolation` is `none` if there is no sandbox. */
  readonly info: Info
  /** URL of a remote server; undefined: the agents of this machine. */
  readonly server: string | undefined
  /** The message to send at once, from the command line. */
  readonly prompt: string | undefined
  /** `--max-steps`: to pass as `max_steps` of each run. */
  readonly maxSteps: number | undefined
  /** `--tool-choice required`: `runWithTool` starts the first run of the chat then. */
  readonly forcesTool: boolean
  /** Sends a message whose first answer must call a tool, instead of `conversation.send`. Returns when its run has started. */
  readonly runWithTool: (conversation: ConversationHandle, content: UserInput['content']) => Promise<void>
  /** `--permission-mode`, as the conversation has it. */
  readonly permissionMode: PermissionMode
  /** Whether the output may have colours: it is a terminal, and NO_COLOR is not set. */
  readonly color: boolean
  /** A line for stderr that a person should see once, such as that commands run without a sandbox. */
  readonly notices: readonly string[]
}

/**
 * Returns the exit code when the user leaves. Stdin and stdout are terminals. It handles SIGINT, and restores the
 * terminal, also when it throws. The caller closes the client afterwards.
 */
export type StartChat = (options: ChatOptions) => Promise<number>
