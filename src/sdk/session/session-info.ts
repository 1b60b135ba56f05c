/** What a query says about its session, in the names of the Claude Agent SDK. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { AgentInfo } from '../../contract/agent-info.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { QueryOptions } from '../options/query-options.ts'

export type ContextUsage = {
  /** Tokens of the last request and its answer, as the model reported them. */
  readonly totalTokens: number
  /** Absent: the window of the model is not known. */
  readonly maxTokens?: number
  readonly percentage?: number
}

export function contextUsageOf({ context: { used, size } }: Pick<ConversationView, 'context'>): ContextUsage {
  return { totalTokens: used, ...(size !== undefined && { maxTokens: size, percentage: (100 * used) / size }) }
}

export type CommandInfo = {
  /** The name without the slash. */
  readonly name: string
  readonly description: string
  readonly argumentHint?: string
}

/** Commands, and then skills. Empty without project settings. */
export function commandsIn({ project_settings: project }: Pick<AgentInfo, 'project_settings'>): CommandInfo[] {
  return [...(project?.commands ?? []), ...(project?.skills ?? [])].map(({ name, description, argument_hint }) => ({
    name,
    description,
    ...withoutUndefined({ argumentHint: argument_hint }),
  }))
}

/** Names of servers. */
export type McpServersChange = { readonly added: readonly string[]; readonly removed: readonly string[] }

export async function replaceMcpServers(
  conversation: ConversationHandle,
  mcpServers: NonNullable<QueryOptions['mcpServers']>,
): Promise<McpServersChange> {
  const before = Object.keys((await conversation.get()).mcp?.mcpServers ?? {})
  await conversation.updateConfig({ mcp: { mcpServers } })
  const after = Object.keys(mcpServers)
  return {
    added: after.filter((name) => !before.includes(name)),
    removed: before.filter((name) => !after.includes(name)),
  }
}
