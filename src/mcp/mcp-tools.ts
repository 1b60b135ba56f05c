/** The tools of MCP servers as the agent calls them, and how many of them a model request lists. */
import { z } from 'zod'
import type { McpServer } from '../contract/mcp/mcp-server.ts'
import type { Tool } from '../tools/tool.ts'
import { hashDefinition, refuseChanged } from '../tools/tool-definition.ts'
import { callServer } from './calls/call-tool.ts'
import type { McpConnection } from './connection.ts'
import type { OfferedTool } from './tools/offered-tools.ts'
import type { ShowText } from './tools/shown-text.ts'
import type { RenderOptions } from './tools/render-result.ts'
import { renderResult } from './tools/render-result.ts'

export type ResultDeps = Pick<RenderOptions, 'keptBytes'> & {
  readonly show: ShowText
  readonly redactLong: RenderOptions['redact']
  readonly save: (text: string) => Promise<string | undefined>
}

/** The tools of all connected servers, by name. */
export type McpTools = ReadonlyMap<string, Tool>

/** The server checks its input itself: its schema is not evaluated here. */
const AnyInput = z.record(z.string(), z.unknown())

export function createMcpTool(
  connection: McpConnection,
  offeredTool: OfferedTool,
  deps: ResultDeps,
): Tool<Record<string, unknown>> {
  const { name, original, description, inputSchema } = offeredTool
  let hash: string | undefined
  const tool: Tool<Record<string, unknown>> = {
    name,
    description,
    input: AnyInput,
    inputSchema,
    get definitionHash() {
      return (hash ??= hashDefinition({ ...offeredTool, server: identityOf(connection.server) }))
    },
    run: async (input, context) => {
      const refusal = refuseChanged(tool, context)
      if (refusal) return refusal
      return await callServer(connection, context, deps.show, async (session, call) => {
        const result = await session.callTool(original, input, call)
        return await renderResult(result, renderOptions(deps, `${connection.name}: ${name}`))
      })
    },
  }
  return tool
}

/** Returns what makes it the same server. */
function identityOf(server: McpServer): object {
  const {
    timeout: _,
    allowed_tools: __,
    disallowed_tools: ___,
    require_approval: ____,
    require_approval_for: _____,
    ...identity
  } = server
  return identity
}

export const renderOptions = (deps: ResultDeps, source: string): RenderOptions => ({
  source,
  keptBytes: deps.keptBytes,
  redact: deps.redactLong,
  show: deps.show,
  save: deps.save,
})

/**
 * Makes a tool of a server that is not connected yet, after a restart for example: it needs the same decisions, and is
 * looked up again when it runs.
 */
export function createPendingTool(name: string, wait: Tool['run']): Tool<Record<string, unknown>> {
  return { name, description: '', input: AnyInput, run: wait }
}
