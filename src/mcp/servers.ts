/** The MCP servers of one conversation: started with its first run, and ended with it. */
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { McpServerList } from '../contract/mcp/mcp-status.ts'
import { Problem } from '../contract/problem.ts'
import { orAborted, settlesWithin } from '../lib/bounded-wait.ts'
import type { Tool } from '../tools/tool.ts'
import type { ConnectionDeps } from './connection.ts'
import { McpConnection } from './connection.ts'
import type { ResultDeps } from './mcp-tools.ts'
import type { PendingAuthorization } from './oauth/pending-authorizations.ts'
import { reasonOf } from './session.ts'
import type { ShowText } from './shown-text.ts'
import { ToolList } from './tool-list.ts'

/** How long a run waits for servers that are still connecting, in milliseconds; it then continues without them. */
const START_WAIT_MS = 5000
const MAX_REASON_CHARS = 500

export type McpServersDeps = Omit<ConnectionDeps, 'onChange'> &
  ResultDeps & {
    /** The status of a server has changed. Must not throw. */
    readonly onStatus: (connection: McpConnection) => void
  }

export class ConversationMcp {
  readonly #connections: ReadonlyMap<string, McpConnection>
  readonly #list: ToolList
  readonly #show: ShowText
  readonly #shown = new Map<string, string>()
  #isClosed = false

  constructor(servers: McpServers, deps: McpServersDeps) {
    this.#show = deps.show
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
    if (!connection || this.#isClosed) throw notFound()
    await settlesWithin(START_WAIT_MS, connection.restart())
    return connection.view
  }

  /** Completes the authorization of a server, and connects it again. Throws a `Problem`. */
  async authorize(pending: PendingAuthorization, answer: URLSearchParams): Promise<McpServerList['items'][number]> {
    const connection = this.#connections.get(pending.server)
    if (!connection || this.#isClosed) throw notFound()
    try {
      await connection.authorize(pending, answer)
    } catch (cause) {
      // It asks again, with another state.
      void connection.restart()
      const reason = this.#show(reasonOf(cause), MAX_REASON_CHARS)
      throw new Problem(
        'mcp_authorization_failed',
        `The MCP server ${pending.server} could not be authorized: ${reason}. Begin again at its authorization_url.`,
        { cause },
      )
    }
    return await this.reconnect(pending.server)
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
    const { name, status, error, authorizationUrl } = connection
    if (status !== 'connected' && status !== 'failed' && status !== 'needs_auth') return
    // The same failure is reported once.
    const shown = `${status} ${error} ${authorizationUrl}`
    if (this.#isClosed || this.#shown.get(name) === shown) return
    this.#shown.set(name, shown)
    onStatus(connection)
  }
}

const notFound = () =>
  new Problem('mcp_server_not_found', 'This conversation has no such MCP server; GET mcp lists them.')
