/**
 * What the command line hands to the interactive chat, which is loaded only when it is needed: `startChat` of
 * `chat/start-chat.ts` is a `StartChat`.
 */
import type { AgentServerClient } from '../client/client.ts'
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import type { Info } from '../contract/server.ts'
import type { ConversationView } from '../contract/conversation.ts'
import type { ChatSettings } from './settings/chat-settings.ts'
import type { GivenNames } from './settings/setting-names.ts'
import type { PermissionMode } from '../contract/values/permission.ts'

export type ChatOptions = {
  readonly client: AgentServerClient
  /** The conversation to begin with: created just now, or resumed with its events. */
  readonly conversation: ConversationHandle
  readonly view: ConversationView
  readonly isResumed: boolean
  /** Creates another conversation with the same flags and settings, in the same directory. */
  readonly createConversation: () => Promise<ConversationView>
  /** The setting that each field of a conversation comes from: an option, a variable or a file. */
  readonly names: GivenNames
  /** The sandbox of commands, and the tools: `isolation` is `none` if there is no sandbox. */
  readonly info: Info
  /** URL of a remote server; undefined: the agents of this machine. */
  readonly server: string | undefined
  /** The directory in which the chat was started: images are read there. */
  readonly directory: string
  /** The words that start this program again in this directory: `agent-server` if a shell finds it. */
  readonly command: string
  /** The file of earlier prompts; undefined: none are kept. */
  readonly historyPath: string | undefined
  /** The message to send at once, from the command line. */
  readonly prompt: string | undefined
  /** `--max-steps`: to pass as `max_steps` of each run. */
  readonly maxSteps: number | undefined
  /** `--tool-choice required`: the first answer in the chat must call a tool. */
  readonly forcesTool: boolean
  /** `--permission-mode`, as the conversation has it. */
  readonly permissionMode: PermissionMode
  /** Whether the output may have colours: it is a terminal, and NO_COLOR is not set. */
  readonly color: boolean
  /** The object `chat` of the settings file. */
  readonly settings: ChatSettings
  /** A line for stderr that a person should see once, such as that commands run without a sandbox. */
  readonly notices: readonly string[]
}

/**
 * Returns the exit code when the user leaves. Stdin and stdout are terminals. It handles SIGINT, and restores the
 * terminal, also when it throws. The caller closes the client afterwards.
 */
export type StartChat = (options: ChatOptions) => Promise<number>
