/** The MCP servers of an editor in the form of this server. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { McpInput, McpServerInput } from '../../contract/mcp/mcp-server.ts'

type Pair = { readonly name: string; readonly value: string }

/** A server as both versions of the protocol have it. */
export type EditorMcpServer = {
  readonly name: string
  readonly type?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: readonly Pair[]
  readonly url?: string
  readonly headers?: readonly Pair[]
}

/** Returns undefined if there are none. Names that the server does not take, or that two servers would have, are changed. */
export function mcpOf(servers: readonly EditorMcpServer[] = []): McpInput | undefined {
  if (servers.length === 0) return undefined
  if (servers.length > MAX_SERVERS)
    throw RequestError.invalidParams(undefined, `there can be at most ${MAX_SERVERS} MCP servers`)
  const serversByName = new Map<string, McpServerInput>()
  for (const server of servers) {
    // The form of a server of an unknown type is not checked.
    const input = inputOf(server)
    serversByName.set(freeName(server.name, serversByName), input)
  }
  return { mcpServers: Object.fromEntries(serversByName) }
}

const MAX_SERVERS = 64
const MAX_NAME_CHARS = 32

function freeName(name: string, usedNames: ReadonlyMap<string, unknown>): string {
  const plainName = name
    .slice(0, 2 * MAX_NAME_CHARS)
    .replaceAll(/[^A-Za-z0-9-]+/g, '_')
    .replaceAll(/^_|_$/g, '')
  for (let number = 1; ; number++) {
    const ending = number === 1 ? '' : `-${number}`
    const start = plainName.slice(0, MAX_NAME_CHARS - ending.length).replace(/_$/, '')
    const candidate = (start || 'server') + ending
    if (!usedNames.has(candidate)) return candidate
  }
}

/** Throws a `RequestError` for a kind of server that did not exist when this was written. */
function inputOf({ name, type, command, args = [], env, url, headers }: EditorMcpServer): McpServerInput {
  if (command !== undefined) return { command, args: [...args], env: pairs(env) }
  if (url !== undefined && (type === 'http' || type === 'sse')) return { type, url, headers: pairs(headers) }
  throw RequestError.invalidParams(undefined, `the MCP server ${JSON.stringify(name)} has a type that is not supported`)
}

const pairs = (list: readonly Pair[] = []): Record<string, string> =>
  Object.fromEntries(list.map(({ name, value }) => [name, value]))
