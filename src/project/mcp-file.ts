/** Reads the MCP servers in `.mcp.json`: their names, and for a trusted project also how they are reached. */
import { isServerName, McpServerInput } from '../contract/mcp/mcp-server.ts'
import { describeIssue } from '../contract/problem.ts'
import { parseJsonObject } from '../lib/json/untrusted-json.ts'
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'
import { MAX_MCP_SERVERS } from './project-limits.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

/** `servers` may have credentials. They are those that the conversation connects to. */
export type ProjectServers = {
  readonly names: readonly string[]
  readonly servers: Readonly<Record<string, McpServerInput>>
}

/** What the settings files say of the servers of `.mcp.json`, as in Claude Code. */
export type ServerChoice = {
  /** Undefined: all. */
  readonly enabled: readonly string[] | undefined
  readonly disabled: readonly string[]
}

export async function readMcpServers(
  context: SourceContext,
  path: string,
  choice: ServerChoice,
): Promise<ProjectServers> {
  const { reader, ignored } = context
  const foundText = await reader.read(path)
  if (foundText.kind === 'missing') return { names: [], servers: {} }
  const givenServers = foundText.kind === 'text' ? parseJsonObject(foundText.text)?.['mcpServers'] : undefined
  if (typeof givenServers !== 'object' || givenServers === null || Array.isArray(givenServers)) {
    ignored.add(
      'MCP servers',
      path,
      foundText.kind === 'refused' ? foundText.reason : 'It is not JSON with an object mcpServers.',
    )
    return { names: [], servers: {} }
  }
  const entries = Object.entries(givenServers)
  const knownEntries = entries.filter(([name]) => NAME.test(name)).slice(0, MAX_MCP_SERVERS)
  if (knownEntries.length < entries.length)
    ignored.add(
      `${entries.length - knownEntries.length} MCP servers`,
      path,
      'Their names are not valid, or there are too many.',
    )
  return { names: knownEntries.map(([name]) => name), servers: usable(context, path, knownEntries, choice) }
}

function usable(
  { isTrusted, ignored }: SourceContext,
  path: string,
  entries: readonly (readonly [string, unknown])[],
  choice: ServerChoice,
): Record<string, McpServerInput> {
  const servers: [string, McpServerInput][] = []
  for (const [name, setting] of entries) {
    const server = isTrusted ? readServer(name, setting, choice) : NOT_TRUSTED
    if (typeof server === 'string') ignored.add(`MCP server ${name}`, path, server)
    else servers.push([name, server])
  }
  return Object.fromEntries(servers)
}

/** Returns a sentence for a server that is not used. */
function readServer(name: string, setting: unknown, { enabled, disabled }: ServerChoice): McpServerInput | string {
  if (disabled.includes(name)) return 'disabledMcpjsonServers has its name.'
  if (enabled && !enabled.includes(name)) return 'enabledMcpjsonServers does not have its name.'
  if (!isServerName(name)) return 'This server cannot use its name for tools.'
  const parseResult = McpServerInput.safeParse(setting)
  if (parseResult.success) return parseResult.data.disabled === true ? 'It is disabled.' : parseResult.data
  const [fault] = parseResult.error.issues.map((issue) => describeIssue(issue, [name]))
  return `${fault?.path ?? name}: ${fault?.message ?? 'is not valid'}.`
}
