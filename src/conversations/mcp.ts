/** Connects the MCP servers of a conversation to its shells, its network, its secrets and its log. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDraft } from '../contract/events/event.ts'
import type { McpServers } from '../contract/mcp/mcp-server.ts'
import type { McpServerList, McpServerView } from '../contract/mcp/mcp-status.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { McpConnection } from '../mcp/connection.ts'
import { ConversationMcp } from '../mcp/servers.ts'
import type { PendingAuthorization } from '../mcp/oauth/pending-authorizations.ts'
import { createShowText } from '../mcp/shown-text.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ConversationShells } from './exec/conversation-shells.ts'
import type { ConversationNetwork } from './network.ts'

export type McpParts = {
  readonly servers: McpServers
  readonly log: EventLog
  readonly runId: () => string | undefined
  readonly workdir: () => string
  /** The server's own directory for this conversation. */
  readonly directory: string
  readonly shells: ConversationShells
  readonly network: ConversationNetwork
  readonly secrets: ConversationSecrets
  readonly redactor: Redactor
  readonly logger: Logger
}

export function buildMcp({ mcp, server }: ConversationDeps, parts: McpParts): ConversationMcp {
  const { servers, log, runId, workdir, directory, shells, network, secrets, redactor, logger } = parts
  return new ConversationMcp(servers, {
    version: server.version,
    workdir,
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
      log.append([statusOf(connection, runId())]).catch((error: unknown) => {
        logger.error(
          { err: error, conversation_id: log.conversationId },
          'the status of an MCP server could not be stored',
        )
      })
    },
  })
}

/** The MCP servers of a conversation, or none. */
export class ClientMcp {
  readonly #mcp: ConversationMcp | undefined

  constructor(mcp: ConversationMcp | undefined) {
    this.#mcp = mcp
  }

  view(): McpServerList {
    return this.#mcp?.view() ?? { items: [] }
  }

  /** Throws a `Problem` if no server has this name. */
  async reconnect(name: string): Promise<McpServerView> {
    if (!this.#mcp) throw new Problem('mcp_server_not_found', 'This conversation has no MCP servers.')
    return await this.#mcp.reconnect(name)
  }

  /** Throws a `Problem`. */
  async authorize(pending: PendingAuthorization, answer: URLSearchParams): Promise<McpServerView> {
    if (!this.#mcp) throw new Problem('mcp_server_not_found', 'This conversation has no MCP servers.')
    return await this.#mcp.authorize(pending, answer)
  }

  /** Ends all connections; the next run makes new ones. */
  async stop(): Promise<void> {
    await this.#mcp?.stop()
  }

  async close(): Promise<void> {
    await this.#mcp?.close()
  }
}

/** The agent's commands can read it there. Without room for it, the result says nothing of a file. */
async function saveOutput(directory: string, text: string, logger: Logger): Promise<string | undefined> {
  const path = join(directory, `mcp-${uuid7()}.txt`)
  try {
    await mkdir(directory, { recursive: true })
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
