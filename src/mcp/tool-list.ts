/**
 * Chooses the tools of MCP servers that a model request lists: all of them, or a search where they would fill the
 * prompt.
 */
import { untilAborted, settlesWithin } from '../lib/bounded-wait.ts'
import { CONNECTING_WAIT_MS, notConnected } from './calls/call-tool.ts'
import type { Tool, ToolContext } from '../tools/tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'
import type { McpConnection } from './connection.ts'
import { createMcpTool, createPendingTool } from './mcp-tools.ts'
import type { McpTools, ResultDeps } from './mcp-tools.ts'
import { createPromptTools, createResourceTools } from './resource-tools.ts'
import { prefixOf } from '../state/mcp-tools.ts'
import { createToolSearch } from './tool-search.ts'

/** Characters of names, descriptions and schemas that a request lists: about 15,000 tokens. */
const BUDGET_CHARS = 60_000

export class ToolList {
  readonly #connections: readonly McpConnection[]
  readonly #deps: ResultDeps
  /** Tools that a search has found, in that order: earlier ones keep their place in the prompt. */
  readonly #foundTools = new Set<string>()
  readonly #more: { readonly resources: readonly Tool[]; readonly prompts: readonly Tool[] }
  readonly #always: McpTools
  /** Remembered, so that the list does not change while a server is reconnected. */
  readonly #seenKinds = { resources: false, prompts: false }
  #tools: McpTools = new Map()
  #listed: readonly Tool[] = []
  #isStale = false

  constructor(connections: readonly McpConnection[], deps: ResultDeps) {
    this.#connections = connections
    this.#deps = deps
    this.#more = { resources: createResourceTools(connections, deps), prompts: createPromptTools(connections, deps) }
    this.#always = new Map([...this.#more.resources, ...this.#more.prompts].map((tool) => [tool.name, tool]))
  }

  /** Called when a server or its tools have changed. */
  change(): void {
    this.#isStale = true
  }

  get listed(): readonly Tool[] {
    this.#update()
    return this.#listed
  }

  find(name: string): Tool | undefined {
    this.#update()
    // It finds those that no request lists, too: the same rules hold for them before their server is connected.
    const knownTool = this.#tools.get(name) ?? this.#always.get(name) ?? this.#listed.find((tool) => tool.name === name)
    if (knownTool) return knownTool
    const connection = this.#connections.find((each) => name.startsWith(prefixOf(each.name)))
    return connection && createPendingTool(name, (input, context) => this.#runLater(connection, name, input, context))
  }

  #update(): void {
    if (!this.#isStale) return
    this.#isStale = false
    const offeredTools = this.#connections.flatMap((connection) =>
      connection.offered.tools.map((tool) => createMcpTool(connection, tool, this.#deps)),
    )
    this.#tools = new Map(offeredTools.map((tool) => [tool.name, tool]))
    for (const kind of ['resources', 'prompts'] as const)
      this.#seenKinds[kind] ||= this.#connections.some(({ session }) => session?.has(kind))
    const more = [
      ...(this.#seenKinds.resources ? this.#more.resources : []),
      ...(this.#seenKinds.prompts ? this.#more.prompts : []),
    ]
    this.#listed = [...(isLarge(offeredTools) ? this.#searched() : offeredTools), ...more]
  }

  #searched(): Tool[] {
    const search = createToolSearch(this.#connections, this.#tools, (names) => {
      const before = this.#foundTools.size
      for (const name of names) this.#foundTools.add(name)
      if (this.#foundTools.size > before) this.change()
    })
    return [search, ...[...this.#foundTools].flatMap((name) => this.#tools.get(name) ?? [])]
  }

  async #runLater(connection: McpConnection, name: string, input: unknown, context: ToolContext): Promise<ToolOutcome> {
    await Promise.race([settlesWithin(CONNECTING_WAIT_MS, connection.start()), untilAborted(context.signal)])
    this.#update()
    const tool = this.#tools.get(name)
    if (tool) return await tool.run(input, context)
    const { status } = connection
    const message =
      status === 'connected' ? `The MCP server ${connection.name} has no tool ${name}.` : notConnected(connection)
    return failure(status === 'connected' ? 'unknown_tool' : 'failed', message)
  }
}

function isLarge(tools: readonly Tool[]): boolean {
  let chars = 0
  for (const { name, description, inputSchema } of tools) {
    chars += name.length + description.length + JSON.stringify(inputSchema).length
    if (chars > BUDGET_CHARS) return true
  }
  return false
}
