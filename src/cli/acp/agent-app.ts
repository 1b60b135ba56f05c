/** The methods of the Agent Client Protocol, version 1. What they mean is in `EditorSession`. */
import type {
  AgentApp,
  AgentContext,
  ClientCapabilities,
  InitializeRequest,
  InitializeResponse,
} from '@agentclientprotocol/sdk'
import { agent, RequestError } from '@agentclientprotocol/sdk'
import { realpath, stat } from 'node:fs/promises'
import type { ConversationView } from '../../contract/conversation.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import { VERSION } from '../../wiring/version.ts'
import { CONVERSATION_ID } from '../command-line/conversation-id.ts'
import { nameOf } from '../conversation/describe-conversation.ts'
import { isAbsolutePath } from './call-form.ts'
import type { ProtocolHost } from '../protocol/protocol-host.ts'
import { MissingSetting } from '../protocol/protocol-host.ts'
import { mcpOf } from './mcp-input.ts'
import { EditorSession } from './session.ts'
import { modesOf, optionsOf } from './session-options.ts'

export type EditorAgentOptions = {
  readonly openHost: () => Promise<ProtocolHost>
  /** Whether directories are those of this machine. */
  readonly isLocal: boolean
}

const PROTOCOL_VERSION = 1
const LIST_PAGE = 100

/** The sessions end with the connection. */
export class EditorAgent {
  readonly #options: EditorAgentOptions
  readonly #sessions = new Map<string, EditorSession>()
  #capabilities: ClientCapabilities = {}

  constructor(options: EditorAgentOptions) {
    this.#options = options
  }

  app(): AgentApp {
    const app = agent({ name: 'agent-server' })
      .onRequest('initialize', ({ params }) => this.#initialize(params))
      .onRequest('authenticate', async () => {
        await this.#host()
        return {}
      })
      .onRequest('session/new', async ({ params: { cwd, mcpServers }, client }) => {
        const directory = await this.#directory(cwd)
        const host = await this.#host()
        const view = await withOwnErrors(host.create(directory, mcpOf(mcpServers)))
        return { sessionId: view.id, ...(await this.#open(view, { client, host, isReplayed: false })) }
      })
      .onRequest('session/load', ({ params, client }) => this.#reopen(params, client, true))
      .onRequest('session/resume', ({ params, client }) => this.#reopen(params, client, false))
      .onRequest('session/list', ({ params }) => this.#list(params.cwd ?? undefined, params.cursor ?? undefined))
    return this.#withSessions(app)
  }

  #withSessions(app: AgentApp): AgentApp {
    return app
      .onRequest('session/prompt', ({ params }) => withOwnErrors(this.#session(params.sessionId).prompt(params.prompt)))
      .onNotification('session/cancel', ({ params }) => withOwnErrors(this.#session(params.sessionId).cancel()))
      .onRequest('session/set_mode', async ({ params }) => {
        await withOwnErrors(this.#session(params.sessionId).setOption('mode', params.modeId))
        return {}
      })
      .onRequest('session/set_config_option', async ({ params }) => ({
        configOptions: await withOwnErrors(this.#session(params.sessionId).setOption(params.configId, params.value)),
      }))
      .onRequest('session/close', async ({ params: { sessionId } }) => {
        const session = this.#session(sessionId)
        await withOwnErrors(session.cancel())
        this.#forget(sessionId)
        return {}
      })
      .onRequest('session/delete', async ({ params: { sessionId } }) => {
        const id = idOf(sessionId)
        const { client } = await this.#host()
        this.#forget(id)
        await withOwnErrors(client.conversation(id).delete())
        return {}
      })
  }

  close(): void {
    for (const id of this.#sessions.keys()) this.#forget(id)
  }

  #initialize({ clientCapabilities = {} }: InitializeRequest): InitializeResponse {
    this.#capabilities = clientCapabilities
    const setUp = {
      id: 'set-up',
      name: 'Set up a model',
      description: 'Starts the chat, which asks for a model and its key.',
    }
    const inTerminal = clientCapabilities.auth?.terminal === true
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'agent-server', title: 'agent-server', version: VERSION },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: this.#options.isLocal && inTerminal ? [{ ...setUp, type: 'terminal', args: ['--set-up'] }] : [],
    }
  }

  async #reopen(
    { sessionId, mcpServers }: { readonly sessionId: string; readonly mcpServers?: Parameters<typeof mcpOf>[0] },
    client: AgentContext,
    isReplayed: boolean,
  ) {
    const id = idOf(sessionId)
    const host = await this.#host()
    const conversation = host.client.conversation(id)
    const adoptedView = await withOwnErrors(host.adopt(await withOwnErrors(conversation.get())))
    const mcp = addedServers(adoptedView, mcpOf(mcpServers))
    const view = mcp ? await withOwnErrors(conversation.updateConfig({ mcp })) : adoptedView
    return await this.#open(view, { client, host, isReplayed })
  }

  async #open(
    view: ConversationView,
    {
      client,
      host,
      isReplayed,
    }: { readonly client: AgentContext; readonly host: ProtocolHost; readonly isReplayed: boolean },
  ) {
    this.#forget(view.id)
    const session = new EditorSession({ client, host, capabilities: this.#capabilities }, view)
    this.#sessions.set(view.id, session)
    if (isReplayed) await withOwnErrors(session.replay())
    // The editor knows the session when it has the answer to this request.
    setImmediate(() => {
      void session.showCommands().catch(() => {}) // commands are a convenience
      void session.follow().catch(() => {}) // what waits can be decided elsewhere
    })
    return { modes: modesOf(view), configOptions: optionsOf(view, host.models) }
  }

  async #list(givenCwd: string | undefined, cursor: string | undefined) {
    const cwd = givenCwd === undefined ? undefined : await this.#realPath(givenCwd)
    const { client } = await this.#host()
    const query = { sort: 'updated_at', archived: false, limit: LIST_PAGE } as const
    let page = await withOwnErrors(
      client.conversations.list({ ...query, ...(cursor !== undefined && { page_id: cursor }) }),
    )
    for (;;) {
      const foundViews = page.items.filter(({ workdir }) => cwd === undefined || workdir === cwd)
      const { next_page_id: next } = page
      const sessions = foundViews.map((view) => ({
        sessionId: view.id,
        cwd: view.workdir,
        title: nameOf(view),
        updatedAt: view.updated_at,
      }))
      if (sessions.length > 0 || next === null) return { sessions, ...(next !== null && { nextCursor: next }) }
      page = await withOwnErrors(client.conversations.list({ ...query, page_id: next }))
    }
  }

  async #host(): Promise<ProtocolHost> {
    return await withOwnErrors(this.#options.openHost())
  }

  #session(id: string): EditorSession {
    const session = this.#sessions.get(id)
    if (!session) throw RequestError.sessionNotFound(id)
    return session
  }

  #forget(id: string): void {
    this.#sessions.get(id)?.close()
    this.#sessions.delete(id)
  }

  async #directory(cwd: string): Promise<string> {
    if (!isAbsolutePath(cwd)) throw RequestError.invalidParams(undefined, 'cwd must be an absolute path')
    const isThere = !this.#options.isLocal || (await stat(cwd).catch(() => undefined))?.isDirectory() === true
    if (!isThere) throw RequestError.invalidParams(undefined, `${cwd} is not a directory`)
    return await this.#realPath(cwd)
  }

  /** Conversations have the real names of directories. */
  async #realPath(cwd: string): Promise<string> {
    return this.#options.isLocal ? await realpath(cwd).catch(() => cwd) : cwd
  }
}

function idOf(sessionId: string): string {
  if (!CONVERSATION_ID.test(sessionId)) throw RequestError.sessionNotFound(sessionId)
  return sessionId.toLowerCase()
}

/** Servers that the conversation does not have. The others keep their stored credentials. */
function addedServers({ mcp }: ConversationView, givenMcp: McpInput | undefined): McpInput | undefined {
  const knownServers = mcp?.mcpServers ?? {}
  const addedEntries = Object.entries(givenMcp?.mcpServers ?? {}).filter(([name]) => !Object.hasOwn(knownServers, name))
  return addedEntries.length === 0
    ? undefined
    : { mcpServers: { ...knownServers, ...Object.fromEntries(addedEntries) } }
}

const [INTERNAL_ERROR, AUTH_REQUIRED] = [-32_603, -32_000]

/** Errors of the server in the form of the protocol. */
async function withOwnErrors<T>(promise: PromiseLike<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw requestErrorOf(error)
  }
}

function requestErrorOf(error: unknown): unknown {
  if (error instanceof RequestError || !(error instanceof Error)) return error
  if (error instanceof MissingSetting) return new RequestError(AUTH_REQUIRED, error.message)
  if (!(error instanceof AgentServerError)) return new RequestError(INTERNAL_ERROR, error.message)
  const { code, status, message } = error
  if (status === 401) return new RequestError(AUTH_REQUIRED, message, { code })
  if (status === 404 || status === 410) return new RequestError(RESOURCE_NOT_FOUND, message, { code })
  return new RequestError(status === 400 ? INVALID_PARAMS : INTERNAL_ERROR, message, { code })
}

const [RESOURCE_NOT_FOUND, INVALID_PARAMS] = [-32_002, -32_602]
