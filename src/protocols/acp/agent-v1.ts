/** The methods of the Agent Client Protocol, version 1. What they mean is in `EditorSession`. */
import type {
  AgentApp,
  AgentContext,
  ClientCapabilities,
  InitializeRequest,
  InitializeResponse,
} from '@agentclientprotocol/sdk'
import { agent } from '@agentclientprotocol/sdk'
import type { EditorAgentOptions } from './editor-agent-options.ts'
import type { OpenedView } from './editor-sessions.ts'
import { EditorSessions } from './editor-sessions.ts'
import { mcpOf } from './mcp-input.ts'
import { withOwnErrors } from './protocol-errors.ts'
import { EditorSession } from './session.ts'
import { modesOf } from './session-options.ts'

const PROTOCOL_VERSION = 1

export class EditorAgent {
  readonly #options: EditorAgentOptions
  readonly #sessions: EditorSessions<EditorSession>
  #capabilities: ClientCapabilities = {}

  constructor(options: EditorAgentOptions) {
    this.#options = options
    this.#sessions = new EditorSessions(options)
  }

  app(): AgentApp {
    const sessions = this.#sessions
    const app = agent({ name: 'agent-server' })
      .onRequest('initialize', ({ params }) => this.#initialize(params))
      .onRequest('authenticate', async () => {
        await sessions.host()
        return {}
      })
      .onRequest('session/new', async ({ params: { cwd, mcpServers }, client }) => {
        const openedView = await sessions.create(cwd, mcpOf(mcpServers))
        return { sessionId: openedView.view.id, ...(await this.#open(openedView, client, false)) }
      })
      .onRequest('session/load', async ({ params: { sessionId, mcpServers }, client }) =>
        this.#open(await sessions.find(sessionId, mcpOf(mcpServers)), client, true),
      )
      .onRequest('session/resume', async ({ params: { sessionId, mcpServers }, client }) =>
        this.#open(await sessions.find(sessionId, mcpOf(mcpServers)), client, false),
      )
      .onRequest('session/list', ({ params }) => sessions.list(params.cwd ?? undefined, params.cursor ?? undefined))
    return this.#withSessions(app)
  }

  #withSessions(app: AgentApp): AgentApp {
    const sessions = this.#sessions
    return app
      .onRequest('session/prompt', ({ params }) => withOwnErrors(sessions.get(params.sessionId).prompt(params.prompt)))
      .onNotification('session/cancel', ({ params }) => withOwnErrors(sessions.get(params.sessionId).cancel()))
      .onRequest('session/set_mode', async ({ params }) => {
        await withOwnErrors(sessions.get(params.sessionId).followed.setOption('mode', params.modeId))
        return {}
      })
      .onRequest('session/set_config_option', async ({ params: { sessionId, configId, value } }) => ({
        configOptions: await withOwnErrors(sessions.get(sessionId).followed.setOption(configId, value)),
      }))
      .onRequest('session/close', async ({ params: { sessionId } }) => {
        await withOwnErrors(sessions.get(sessionId).cancel())
        sessions.forget(sessionId)
        return {}
      })
      .onRequest('session/delete', async ({ params: { sessionId } }) => {
        await sessions.delete(sessionId)
        return {}
      })
  }

  close(): void {
    this.#sessions.close()
  }

  #initialize({ clientCapabilities = {} }: InitializeRequest): InitializeResponse {
    this.#capabilities = clientCapabilities
    const { isLocal, version } = this.#options
    const inTerminal = clientCapabilities.auth?.terminal === true
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'agent-server', title: 'agent-server', version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: isLocal && inTerminal ? [{ id: SET_UP_ID, ...SET_UP }] : [],
    }
  }

  async #open({ view, host }: OpenedView, client: AgentContext, isReplayed: boolean) {
    const { warn } = this.#options
    const session = new EditorSession({ client, host, warn, capabilities: this.#capabilities }, view)
    const replay = isReplayed ? async () => await session.followed.replay() : undefined
    const configOptions = await this.#sessions.open(session, host, replay)
    return { modes: modesOf(view), configOptions }
  }
}

export const SET_UP_ID = 'set-up'
/** How a person sets what is missing: in a terminal that the editor opens. */
export const SET_UP = {
  type: 'terminal' as const,
  name: 'Set up a model',
  description: 'Starts the chat, which asks for a model and its key.',
  args: ['--set-up'],
}
