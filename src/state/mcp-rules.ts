/** `require_approval` of MCP servers as permission rules that ask, which hold in each mode. */
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { PermissionRules } from '../contract/values/permission.ts'
import { toolNameOf } from './mcp-tool-names.ts'

/** Computed once for each configuration: they are needed for each step of the agent. */
const knownRules = new WeakMap<McpServers, PermissionRules>()

/** Undefined if no server requires approval. */
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
