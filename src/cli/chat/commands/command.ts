/** What a slash command of the chat is, and what it may do. */
import type { ConversationView } from '../../../contract/conversation.ts'
import type { ChatOptions } from '../../chat-seam.ts'
import type { GivenNames } from '../../settings/setting-names.ts'
import type { ThemeName } from '../render/theme.ts'
import type { Choice } from '../render/choice-panel.ts'
import type { ChatSession } from '../chat-session.ts'

export type ChatContext = {
  readonly options: ChatOptions
  readonly session: ChatSession
  /** Shows another conversation. */
  readonly switchTo: (view: ConversationView, names?: GivenNames) => void
  /** Asks the user; Esc closes the list. */
  readonly pick: (choice: Choice) => void
  readonly exit: () => void
  /** Sends a message to the agent. */
  readonly send: (text: string) => Promise<void>
  /** Puts a text into the clipboard. */
  readonly copy: (text: string) => void
  /** Opens the prompt in the editor of the person. */
  readonly openEditor: () => Promise<void>
  readonly setTheme: (name: ThemeName) => void
}

export type ChatCommand = {
  readonly name: string
  readonly argument?: string
  readonly description: string
  /** Arguments to complete. */
  readonly values?: readonly string[]
  /** Throws what the user should read. */
  readonly run: (context: ChatContext, argument: string) => Promise<void> | void
}
