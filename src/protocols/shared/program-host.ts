/** What a program of a person works with, such as an editor: a client of the server that runs the agents, and what the person has set. */
import type { AgentServerClient } from '../../client/client.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'

export type ProgramHost = {
  readonly client: AgentServerClient
  /** Names of models to choose from. */
  readonly models: readonly string[]
  /** The server makes a directory if `cwd` is undefined. */
  readonly create: (cwd: string | undefined, mcp: McpInput | undefined) => Promise<ConversationView>
  /** Gives an earlier conversation what this process has: the current key of the model, and access to the home. */
  readonly adopt: (view: ConversationView) => Promise<ConversationView>
  /** Continues a run after another process that ran the agents has ended. Undefined if they are on a server. */
  readonly continueRun?: ((conversation: ConversationHandle, after: number) => Promise<string | undefined>) | undefined
}

/** No model is set, or no key: a person must do something outside of the program. */
export class MissingSetting extends Error {
  override readonly name = 'MissingSetting'
}
