/** Connects the MCP servers of a conversation to its shells, its network, its secrets and its log. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import type { ChangingTools } from '../agent/describe-tool.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { McpServerList, McpServerView } from '../contract/mcp/mcp-status.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { McpConnection } from '../mcp/connection.ts'
import { ConversationMcp } from '../mcp/servers.ts'
import type { PendingAuthorization } from '../mcp/oauth/pending-authorizations.ts'
import { createShowText } from '../mcp/tools/shown-text.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Tool } from '../tools/tool.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ConversationShells } from '../workspace/exec/conversation-shells.ts'
import type { ConversationNetwork } from '../workspace/network.ts'
import type { LiveState } from './live/live-state.ts'

export type McpParts = {
  readonly log: EventLog
  readonly state: LiveState
  readonly workdir: () => string
  /** The server's own directory for this conversation. */
  readonly directory: string
  readonly shells: ConversationShells
  readonly network: ConversationNetwork
  readonly secrets: ConversationSecrets
  readonly redactor: Redactor
  readonly logger: Logger
}

export const buildMcp = (deps: ConversationDeps, parts: McpParts): ClientMcp =>
  new ClientMcp(
    () => parts.state.current.settings.mcp,
    (servers) => buildServers(deps, parts, servers),
  )

function buildServers({ mcp, server }: ConversationDeps, parts: McpParts, servers: McpServers): ConversationMcp {
  const { log, state, workdir, directory, shells, network, secrets, redactor, logger } = parts
  return new ConversationMcp(servers, {
    version: server.version,
    directories: () => [workdir(), ...(state.current.settings.additional_directories ?? [])],
    startProgram: (options) => shells.current().startProgram(options),
    fetch: mcp.fetch,
    refusal: (url, signal) => network.refusal(url, signal),
    secrets: secrets.mcpSource,
    oauth: {
      conversationId: log.conversationId,
      pending: mcp.pending,
      redirectUrl: mcp.redirectUrl,
      storeOf: (name) => secrets.oauthOf(name),
    },
    show: createShowText(redactor),
    redactLong: redactor.redactInSlices,
    keptBytes: mcp.keptBytes,
    save: (text) => saveOutput(mcp.outputsOf(directory), text, logger),
    onStatus: (connection) => {
      log.append([statusOf(connection, state.current.run?.id)]).catch((error: unknown) => {
        logger.error(
          { err: error, conversation_id: log.conversationId },
          'the status of an MCP server could not be stored',
        )
      })
    },
  })
}

/** The MCP servers of a conversation, or none: those of its present configuration. */
export class ClientMcp implements ChangingTools {
  readonly #configured: () => McpServers | undefined
  readonly #build: (servers: McpServers) => ConversationMcp
  #madeServers: McpServers | undefined
  #mcp: ConversationMcp | undefined

  constructor(configuredServers: () => McpServers | undefined, build: (servers: McpServers) => ConversationMcp) {
    this.#configured = configuredServers
    this.#build = build
  }

  get listed(): readonly Tool[] {
    return this.#current()?.listed ?? NO_TOOLS
  }

  readonly find = (name: string): Tool | undefined => this.#current()?.find(name)

  get prepare(): ChangingTools['prepare'] {
    const mcp = this.#current()
    return mcp && ((signal) => mcp.prepare(signal))
  }

  /** The configuration has changed. While an agent works, new servers begin to connect. */
  update(isWorking: boolean): void {
    const mcp = this.#current()
    if (isWorking) mcp?.startNew()
  }

  view(): McpServerList {
    return this.#current()?.view() ?? { items: [] }
  }

  /** Throws a `Problem` if no server has this name. */
  async reconnect(name: string): Promise<McpServerView> {
    return await this.#required().reconnect(name)
  }

  /** Throws a `Problem`. */
  async authorize(pending: PendingAuthorization, answer: URLSearchParams): Promise<McpServerView> {
    return await this.#required().authorize(pending, answer)
  }

  #required(): ConversationMcp {
    const mcp = this.#current()
    if (!mcp) throw new Problem('mcp_server_not_found', 'This conversation has no MCP servers.')
    return mcp
  }

  /** Follows the state without a delay: a call must not reach a former server under the rules for the present one. */
  #current(): ConversationMcp | undefined {
    const servers = this.#configured()
    if (servers === this.#madeServers) return this.#mcp
    this.#madeServers = servers
    if (this.#mcp) this.#mcp.update(servers ?? {})
    else if (servers) this.#mcp = this.#build(servers)
    return this.#mcp
  }

  /** Ends all connections; the next run makes new ones. */
  async stop(): Promise<void> {
    await this.#mcp?.stop()
  }

  async close(): Promise<void> {
    await this.#mcp?.close()
  }
}

const NO_TOOLS: readonly Tool[] = []

/** The agent's commands can read it there. Without room for it, the result says nothing of a file. */
async function saveOutput(directory: string, text: string, logger: Logger): Promise<string | undefined> {
  const path = join(directory, `mcp-${uuid7()}.txt`)
  try {
    await makeDirectories(directory)
    await writeFile(path, text, { flag: 'wx' })
    return path
  } catch (error) {
    logger.warn({ err: error }, 'the result of an MCP server could not be written')
    return undefined
  }
}

function statusOf(
  { name, status, error, offered, authorizationUrl }: McpConnection,
  runId: string | undefined,
): EventDraft {
  return {
    type: 'McpServerUpdate',
    source: 'environment',
    ...(runId !== undefined && { run_id: runId }),
    server: name,
    status,
    ...(error !== undefined && { error }),
    ...(authorizationUrl !== undefined && { authorization_url: authorizationUrl }),
    tools: offered.tools.length,
  }
}
