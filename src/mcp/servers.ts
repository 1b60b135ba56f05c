/** The MCP servers of one conversation: started with its first run, and ended with it. */
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { McpServerList } from '../contract/mcp/mcp-status.ts'
import { Problem } from '../contract/problem.ts'
import { orAborted, settlesWithin } from '../lib/bounded-wait.ts'
import type { Tool } from '../tools/tool.ts'
import type { ConnectionDeps } from './connection.ts'
import { McpConnection } from './connection.ts'
import type { ResultDeps } from './mcp-tools.ts'
import { ToolList } from './tool-list.ts'

/** How long a run waits for servers that are still connecting, in milliseconds; it then continues without them. */
const START_WAIT_MS = 5000

export type McpServersDeps = Omit<ConnectionDeps, 'onChange'> &
  ResultDeps & {
    /** The status of a server has changed. Must not throw. */
    readonly onStatus: (connection: McpConnection) => void
  }

export class ConversationMcp {
  readonly #connections: ReadonlyMap<string, McpConnection>
  readonly #list: ToolList
  readonly #shown = new Map<string, string>()
  #isClosed = false

  constructor(servers: McpServers, deps: McpServersDeps) {
    const onChange = (connection: McpConnection) => this.#onChange(connection, deps)
    this.#connections = new Map(
      Object.entries(servers).map(([name, server]) => [name, new McpConnection(name, server, { ...deps, onChange })]),
    )
    this.#list = new ToolList([...this.#connections.values()], deps)
  }

  /** What a model request lists. The same array until it changes. */
  get listed(): readonly Tool[] {
    return this.#list.listed
  }

  /** Finds a tool, listed or not. */
  find(name: string): Tool | undefined {
    return this.#list.find(name)
  }

  /** Starts what is not started, and waits for it for a short time. Rejects only with the reason of the signal. */
  async prepare(signal: AbortSignal): Promise<void> {
    if (this.#isClosed) return
    const started = Promise.all(this.#connections.values().map((connection) => connection.start()))
    await orAborted(settlesWithin(START_WAIT_MS, started), signal)
  }

  view(): McpServerList {
    return { items: [...this.#connections.values()].map(({ view }) => view) }
  }

  /** Connects a server again. Throws a `Problem` if no server has this name. */
  async reconnect(name: string): Promise<McpServerList['items'][number]> {
    const connection = this.#connections.get(name)
    if (!connection || this.#isClosed)
      throw new Problem('mcp_server_not_found', 'This conversation has no such MCP server; GET mcp lists them.')
    await settlesWithin(START_WAIT_MS, connection.restart())
    return connection.view
  }

  /** Ends all connections and their processes. Those that were started can be started again by `prepare`. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#connections.values().map((connection) => connection.close()))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.stop()
  }

  #onChange(connection: McpConnection, { onStatus }: McpServersDeps): void {
    this.#list.change()
    const { name, status, error } = connection
    if (status !== 'connected' && status !== 'failed') return
    // The same failure is reported once.
    const shown = `${status} ${error}`
    if (this.#isClosed || this.#shown.get(name) === shown) return
    this.#shown.set(name, shown)
    onStatus(connection)
  }
}
