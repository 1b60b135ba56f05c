/** The MCP servers of one conversation: started with its first run, and ended with it. */
import type { McpServer, McpServers } from '../contract/mcp/mcp-server.ts'
import type { McpServerList } from '../contract/mcp/mcp-status.ts'
import { Problem } from '../contract/problem.ts'
import { orAborted, settlesWithin } from '../lib/bounded-wait.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'
import type { Tool } from '../tools/tool.ts'
import type { ConnectionDeps } from './connection.ts'
import { McpConnection } from './connection.ts'
import type { ResultDeps } from './mcp-tools.ts'
import type { PendingAuthorization } from './oauth/pending-authorizations.ts'
import { reasonOf } from './calls/reason-of.ts'
import type { ShowText } from './tools/shown-text.ts'
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
  readonly #deps: McpServersDeps
  readonly #show: ShowText
  readonly #shown = new Map<string, string>()
  #connections: ReadonlyMap<string, McpConnection> = new Map()
  /** Connections that were removed and have not ended yet, by name. */
  readonly #ending = new Map<string, Promise<void>>()
  #list: ToolList
  /** True since a run has begun, until all connections are ended. */
  #isStarted = false
  #isClosed = false

  constructor(servers: McpServers, deps: McpServersDeps) {
    this.#deps = deps
    this.#show = deps.show
    this.#list = new ToolList([], deps)
    this.update(servers)
  }

  /**
   * The configuration has changed. Servers that are the same keep their connection and their place in the list of tools;
   * calls that others work on are interrupted. New ones begin to connect if a run has begun.
   */
  update(servers: McpServers): void {
    const former = this.#connections
    const keptConnections = [...former.values()].filter(({ name, server }) => isSame(server, servers[name]))
    const endedConnections = [...former.values()].filter((each) => !keptConnections.includes(each))
    const others = Object.entries(servers).filter(([name]) => !keptConnections.some((each) => each.name === name))
    if (former.size > 0 && endedConnections.length + others.length === 0) return
    for (const connection of endedConnections) this.#end(connection)
    const createdConnections = others.map(([name, server]) => this.#create(name, server))
    this.#connections = new Map([...keptConnections, ...createdConnections].map((each) => [each.name, each]))
    this.#list = new ToolList([...this.#connections.values()], this.#deps)
    this.#list.change()
    if (this.#isStarted) this.startNew()
  }

  #end(connection: McpConnection): void {
    const { name } = connection
    this.#shown.delete(name)
    const closing = connection.close().finally(() => this.#ending.get(name) === closing && this.#ending.delete(name))
    this.#ending.set(name, closing)
  }

  #create(name: string, server: McpServer): McpConnection {
    const onChange = (connection: McpConnection) => this.#onChange(connection)
    return new McpConnection(name, server, { ...this.#deps, onChange }, this.#ending.get(name))
  }

  /** Returns what a model request lists. The same array until it changes. */
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
    this.#isStarted = true
    const starting = Promise.all(this.#connections.values().map((connection) => connection.start()))
    await orAborted(settlesWithin(START_WAIT_MS, starting), signal)
  }

  /** Starts those that were never started, in the background. */
  startNew(): void {
    if (this.#isClosed) return
    this.#isStarted = true
    for (const connection of this.#connections.values()) if (connection.status === 'pending') void connection.start()
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
    this.#isStarted = false
    const open = this.#connections.values().map((connection) => connection.close())
    await Promise.allSettled([...open, ...this.#ending.values()])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.stop()
  }

  #onChange(connection: McpConnection): void {
    const { name, status, error, authorizationUrl } = connection
    // One that is being removed still changes.
    if (this.#connections.get(name) !== connection) return
    this.#list.change()
    if (status !== 'connected' && status !== 'failed' && status !== 'needs_auth') return
    // The same failure is reported once.
    const shownState = `${status} ${error} ${authorizationUrl}`
    if (this.#isClosed || this.#shown.get(name) === shownState) return
    this.#shown.set(name, shownState)
    this.#deps.onStatus(connection)
  }
}

const notFound = () =>
  new Problem('mcp_server_not_found', 'This conversation has no such MCP server; GET mcp lists them.')

const isSame = (a: McpServer, b: McpServer | undefined): boolean => canonicalJson(a) === canonicalJson(b)
