import { expect, test } from 'vitest'
import { McpServers } from '../../src/contract/mcp/mcp-server.ts'
import { mcpRules } from '../../src/state/mcp-tools.ts'

const SERVER = 'https://example.org/mcp'

test('servers that require approval are asked about: as a whole, or for the tools that are named', () => {
  const servers = McpServers.parse({
    all: { transport: 'http', url: SERVER, require_approval: true },
    some: { transport: 'http', url: SERVER, require_approval_for: ['read', 'write'] },
    none: { transport: 'http', url: SERVER },
  })
  expect(mcpRules(servers)).toEqual({ allow: [], ask: ['mcp__all', 'mcp__some__read', 'mcp__some__write'], deny: [] })
})

test('without a server that requires approval there are no rules', () => {
  expect(mcpRules(undefined)).toBeUndefined()
  expect(mcpRules(McpServers.parse({ none: { transport: 'http', url: SERVER } }))).toBeUndefined()
})
