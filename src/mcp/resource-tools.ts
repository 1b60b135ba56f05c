/** Tools for the resources and prompts of MCP servers: list them, and read one. */
import { z } from 'zod'
import type { Tool, ToolContext } from '../tools/tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'
import { callServer } from './calls/call-tool.ts'
import type { LiveCall } from './calls/live-call.ts'
import type { McpConnection } from './connection.ts'
import type { ResultDeps } from './mcp-tools.ts'
import { renderOptions } from './mcp-tools.ts'
import type { Session } from './session.ts'
import { renderResult, resourceText } from './tools/render-result.ts'

/** The length of one entry of a list, in characters. */
const MAX_ENTRY_CHARS = 1000

const server = z.string().describe('The name of the MCP server.')
const ListInput = z.object({ server: server.optional().describe('Only of this server. Default: of all.') })
const ReadInput = z.object({ server, uri: z.string().min(1).max(8192).describe('The URI, as it is listed.') })
const PromptInput = z.object({
  server,
  name: z.string().min(1).max(500).describe('The name, as it is listed.'),
  arguments: z.record(z.string(), z.string()).default({}),
})

type Connections = readonly McpConnection[]

export function createResourceTools(connections: Connections, deps: ResultDeps): readonly Tool[] {
  const readTool: Tool<z.infer<typeof ReadInput>> = {
    name: 'ReadMcpResource',
    description: 'Reads a resource of an MCP server.',
    input: ReadInput,
    access: ({ server }) => ({ kind: 'other', mcpServers: [server] }),
    run: (input, context) =>
      onServer(connections, input.server, context, deps, async (session, call) => {
        const { contents } = await session.readResource(input.uri, call.signal)
        const content = contents.map((each) => ({ type: 'text' as const, text: resourceText(each, deps.show) }))
        return await renderResult({ content }, renderOptions(deps, `${input.server}: ${input.uri.slice(0, 500)}`))
      }),
  }
  const list = createListTool(connections, deps, {
    name: 'ListMcpResources',
    description: 'Lists the resources of MCP servers.',
    kind: 'resources',
    entries: async (session, call) =>
      (await session.listResources(call.signal)).items.map(({ uri, name, description, mimeType }) => ({
        uri,
        name,
        description,
        mimeType,
      })),
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the input is parsed before `run`
  return [list, readTool] as Tool[]
}

export function createPromptTools(connections: Connections, deps: ResultDeps): readonly Tool[] {
  const get: Tool<z.infer<typeof PromptInput>> = {
    name: 'GetMcpPrompt',
    description: 'Returns a prompt of an MCP server, filled in with arguments.',
    input: PromptInput,
    access: ({ server }) => ({ kind: 'other', mcpServers: [server] }),
    run: (input, context) =>
      onServer(connections, input.server, context, deps, async (session, call) => {
        const { messages } = await session.getPrompt(input.name, input.arguments, call.signal)
        const content = messages.flatMap((each) => [{ type: 'text' as const, text: `[${each.role}]` }, each.content])
        return await renderResult({ content }, renderOptions(deps, `${input.server}: ${input.name}`))
      }),
  }
  const list = createListTool(connections, deps, {
    name: 'ListMcpPrompts',
    description: 'Lists the prompts of MCP servers.',
    kind: 'prompts',
    entries: async (session, call) =>
      (await session.listPrompts(call.signal)).items.map((prompt) => ({
        name: prompt.name,
        description: prompt.description,
        arguments: prompt.arguments?.map((each) => `${each.name}${each.required ? '' : '?'}`),
      })),
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the input is parsed before `run`
  return [list, get] as Tool[]
}

type ListTool = {
  readonly name: string
  readonly description: string
  readonly kind: 'resources' | 'prompts'
  readonly entries: (session: Session, call: LiveCall) => Promise<readonly object[]>
}

function createListTool(
  connections: Connections,
  deps: ResultDeps,
  { name, description, kind, entries }: ListTool,
): Tool<z.infer<typeof ListInput>> {
  return {
    name,
    description,
    input: ListInput,
    // It asks each of them if no server is named.
    access: ({ server }) => ({
      kind: 'none',
      mcpServers: server === undefined ? connections.map(({ name }) => name) : [server],
    }),
    async run(input, context) {
      const askedConnections = connections.filter((each) => input.server === undefined || each.name === input.server)
      if (input.server !== undefined && askedConnections.length === 0) return noSuchServer(connections)
      const texts = await Promise.all(
        askedConnections.map(async (connection) => {
          if (!connection.session?.has(kind)) return []
          const outcome = await callServer(connection, context, deps.show, async (session, call) => ({
            output: (await entries(session, call))
              .map((entry) => deps.show(JSON.stringify({ server: connection.name, ...entry }), MAX_ENTRY_CHARS))
              .join('\n'),
          }))
          return [String(outcome.output)]
        }),
      )
      const content = [{ type: 'text' as const, text: texts.flat().join('\n') || `There are no ${kind}.` }]
      return await renderResult({ content }, renderOptions(deps, kind))
    },
  }
}

async function onServer(
  connections: Connections,
  name: string,
  context: ToolContext,
  deps: ResultDeps,
  work: (session: Session, call: LiveCall) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const connection = connections.find((each) => each.name === name)
  return connection ? await callServer(connection, context, deps.show, work) : noSuchServer(connections)
}

function noSuchServer(connections: Connections): ToolOutcome {
  const names = connections.map(({ name }) => name)
  return failure('invalid_input', `There is no such MCP server. The servers are: ${names.join(', ')}.`)
}
