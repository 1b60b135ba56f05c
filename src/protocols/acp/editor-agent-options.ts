/** What serves an editor is made of. */
import type { ConversationView } from '../../contract/conversation.ts'
import type { ProgramHost } from '../shared/program-host.ts'

export type EditorAgentOptions = {
  readonly openHost: () => Promise<ProgramHost>
  /** Whether directories are those of this machine. */
  readonly isLocal: boolean
  /** Whether the keys come from the environment of the program, and not with the connection. */
  readonly usesEnvironment: boolean
  readonly version: string
  /** How lists name a conversation. */
  readonly nameOf: (view: ConversationView) => string
  /** Reports what nobody waits for. */
  readonly warn: (text: string) => void
}
