/** The MCP servers of an editor in the form of this server. */
import type { McpServer } from '@agentclientprotocol/sdk'
import type { McpInput, McpServerInput } from '../../contract/mcp/mcp-server.ts'

/** Returns undefined if there are none. Names that the server does not take, or that two servers would have, are changed. */
export function mcpOf(servers: readonly McpServer[] = []): McpInput | undefined {
  if (servers.length === 0) return undefined
  const serversByName = new Map<string, McpServerInput>()
  for (const server of servers) serversByName.set(freeName(server.name, serversByName), inputOf(server))
  return { mcpServers: Object.fromEntries(serversByName) }
}

const MAX_NAME_CHARS = 32

function freeName(name: string, usedNames: ReadonlyMap<string, unknown>): string {
  for (let number = 1; ; number++) {
    const candidate = nameOf(name, number === 1 ? '' : `-${number}`)
    if (!usedNames.has(candidate)) return candidate
  }
}

const nameOf = (name: string, ending: string): string =>
  (name
    .replaceAll(/[^A-Za-z0-9-]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .slice(0, MAX_NAME_CHARS - ending.length)
    .replace(/_$/, '') || 'server') + ending

function inputOf(server: McpServer): McpServerInput {
  if ('command' in server) {
    const { command, args, env } = server
    return { command, args, env: pairs(env) }
  }
  return { type: server.type, url: server.url, headers: pairs(server.headers) }
}

const pairs = (list: readonly { readonly name: string; readonly value: string }[]): Record<string, string> =>
  Object.fromEntries(list.map(({ name, value }) => [name, value]))
