/** The MCP servers of an editor in the form of this server. */
import type { McpServer } from '@agentclientprotocol/sdk'
import type { McpInput, McpServerInput } from '../../contract/mcp/mcp-server.ts'

/** Returns undefined if there are none. Names that the server does not take are changed. */
export function mcpOf(servers: readonly McpServer[] = []): McpInput | undefined {
  if (servers.length === 0) return undefined
  return { mcpServers: Object.fromEntries(servers.map((server) => [nameOf(server.name), inputOf(server)])) }
}

const MAX_NAME_CHARS = 32

const nameOf = (name: string): string =>
  name
    .replaceAll(/[^A-Za-z0-9-]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .slice(0, MAX_NAME_CHARS)
    .replace(/_$/, '') || 'server'

function inputOf(server: McpServer): McpServerInput {
  if ('command' in server) {
    const { command, args, env } = server
    return { command, args, env: pairs(env) }
  }
  return { type: server.type, url: server.url, headers: pairs(server.headers) }
}

const pairs = (list: readonly { readonly name: string; readonly value: string }[]): Record<string, string> =>
  Object.fromEntries(list.map(({ name, value }) => [name, value]))
