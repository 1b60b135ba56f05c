/**
 * What the state knows of the tools of MCP servers: the names that models accept, are unique and say which server a tool is of, and
 * the rules that follow from `require_approval`.
 */
import { createHash } from 'node:crypto'
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { PermissionRules } from '../contract/values/permission.ts'

/** The limit of model providers. */
const MAX_TOOL_NAME_CHARS = 64

/** Distinguishes names that would be the same. */
const HASH_CHARS = 8

/** All tools of a server begin with this. */
export const prefixOf = (server: string): string => `mcp__${server}__`

/** A name that has other characters than models accept, or is too long, gets a hash of it instead. */
export function toolNameOf(server: string, tool: string): string {
  const plain = tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  const name = prefixOf(server) + plain
  return plain === tool && plain !== '' && name.length <= MAX_TOOL_NAME_CHARS ? name : withHash(name, tool)
}

function withHash(name: string, tool: string): string {
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, HASH_CHARS)
  return `${name.slice(0, MAX_TOOL_NAME_CHARS - HASH_CHARS - 1)}_${hash}`
}

/** Computed once for each configuration: they are needed for each step of the agent. */
const knownRules = new WeakMap<McpServers, PermissionRules>()

/** Returns the rules that ask, which hold in each mode; undefined if no server requires approval. */
export function mcpRules(servers: McpServers | undefined): PermissionRules | undefined {
  if (!servers) return undefined
  let rules = knownRules.get(servers)
  if (!rules) knownRules.set(servers, (rules = { allow: [], ask: rulesToConfirm(servers), deny: [] }))
  return rules.ask.length > 0 ? rules : undefined
}

function rulesToConfirm(servers: McpServers): string[] {
  return Object.entries(servers).flatMap(([name, { require_approval: isWhole, require_approval_for: some = [] }]) =>
    isWhole ? [`mcp__${name}`] : some.map((tool) => toolNameOf(name, tool)),
  )
}
