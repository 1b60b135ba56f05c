/** Joins the MCP servers of a request for a new conversation with those of its project, and stores their credentials. */
import type { CreateConversation } from '../../contract/conversation.ts'
import type { McpServers } from '../../contract/mcp/mcp-server.ts'
import { MAX_MCP_SERVERS } from '../../contract/mcp/mcp-server.ts'
import { Problem } from '../../contract/problem.ts'
import type { ReadMcp } from '../../mcp/read-config.ts'
import { readMcp } from '../../mcp/read-config.ts'
import type { LoadedProject } from '../../project/load-project.ts'
import type { ConversationSecrets } from '../config/secrets.ts'

export type JoinMcpOptions = {
  readonly requested: ReadMcp | undefined
  readonly rawProject: LoadedProject | undefined
  readonly secrets: Pick<ConversationSecrets, 'addMcp'>
  /** Throws a `Problem` if the client may not use these servers. */
  readonly mayConnect: (mcp: CreateConversation['mcp']) => void
}

/** Joins the servers of the request and of files: of two with one name, that of the request counts. Throws a `Problem`. */
export async function joinMcp({
  requested: requestedMcp,
  rawProject,
  secrets,
  mayConnect,
}: JoinMcpOptions): Promise<McpServers | undefined> {
  const entries = Object.entries(rawProject?.mcpServers ?? {}).filter(
    ([name]) => !Object.hasOwn(requestedMcp?.servers ?? {}, name),
  )
  if (entries.length === 0) return requestedMcp?.servers
  const mcpServers = Object.fromEntries(entries)
  mayConnect({ mcpServers })
  const { servers, credentials } = readMcp({ mcpServers })
  const all = { ...servers, ...requestedMcp?.servers }
  if (Object.keys(all).length > MAX_MCP_SERVERS)
    throw new Problem(
      'invalid_request',
      `setting_sources: with the MCP servers of .mcp.json there are more than ${MAX_MCP_SERVERS}. Leave some out with disabledMcpjsonServers.`,
    )
  await secrets.addMcp(credentials)
  return all
}
