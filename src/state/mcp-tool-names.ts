/** Names for the tools of MCP servers that models accept, that are unique, and that say which server they are of. */
import { createHash } from 'node:crypto'

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
