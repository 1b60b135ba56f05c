/** Reads the names of the MCP servers in `.mcp.json`. Their settings may have credentials, and are not kept. */
import { parseJsonObject } from '../lib/json/untrusted-json.ts'
import type { SourceContext } from './load-context.ts'
import { MAX_MCP_SERVERS } from './project-limits.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

export async function readMcpServers({ reader, ignored }: SourceContext, path: string): Promise<string[]> {
  const found = await reader.read(path)
  if (found.kind === 'missing') return []
  const servers = found.kind === 'text' ? parseJsonObject(found.text)?.['mcpServers'] : undefined
  if (typeof servers !== 'object' || servers === null || Array.isArray(servers)) {
    ignored.add(
      'MCP servers',
      path,
      found.kind === 'refused' ? found.reason : 'It is not JSON with an object mcpServers.',
    )
    return []
  }
  const names = Object.keys(servers)
  const known = names.filter((name) => NAME.test(name)).slice(0, MAX_MCP_SERVERS)
  if (known.length < names.length)
    ignored.add(`${names.length - known.length} MCP servers`, path, 'Their names are not valid, or there are too many.')
  return known
}
