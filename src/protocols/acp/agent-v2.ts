/** The methods of the Agent Client Protocol, version 2. What they mean is in `EditorSessionV2`. */
import type {
  AgentApp,
  AgentContext,
  AuthMethod,
  ClientCapabilities,
  InitializeRequest,
  InitializeResponse,
} from '@agentclientprotocol/sdk/experimental/v2'
import { agent, RequestError } from '@agentclientprotocol/sdk/experimental/v2'
import { SET_UP, SET_UP_ID } from './agent-v1.ts'
import type { EditorAgentOptions } from './editor-agent-options.ts'
import type { OpenedView } from './editor-sessions.ts'
import { EditorSessions } from './editor-sessions.ts'
import { mcpOf } from './mcp-input.ts'
import { withOwnErrors } from './protocol-errors.ts'
import { EditorSessionV2 } from './session-v2.ts'
import { optionsInVersion2, serversInVersion1 } from './update-words.ts'

const PROTOCOL_VERSION = 2

const ENVIRONMENT: AuthMethod = {
  type: 'agent',
  methodId: 'environment',
  name: 'Environment',
  description: 'Uses the model and the keys of the environment and the settings of this program.',
}

export class EditorAgentV2 {
  readonly #options: EditorAgentOptions
  readonly #sessions: EditorSessions<EditorSessionV2>
  #capabilities: ClientCapabilities = {}

  constructor(options: EditorAgentOptions) {
    this.#options = options
    this.#sessions = new EditorSessions(options)
  }

  app(): AgentApp {
    const sessions = this.#sessions
    const app = agent({ name: 'agent-server' })
      .onRequest('initialize', ({ params }) => this.#initialize(params))
      .onRequest('session/new', async ({ params: { cwd, mcpServers }, client }) => {
        const openedView = await sessions.create(cwd, mcpOf(serversInVersion1(mcpServers)))
        const session = this.#sessionOf(openedView, client)
        return { sessionId: openedView.view.id, configOptions: await this.#open(session, openedView) }
      })
      .onRequest('session/resume', async ({ params: { sessionId, mcpServers, replayFrom }, client }) => {
        const openedView = await sessions.find(sessionId, mcpOf(serversInVersion1(mcpServers)))
        const session = this.#sessionOf(openedView, client)
        const resume = async () => await session.resume(replayFrom ?? undefined)
        return { configOptions: await this.#open(session, openedView, resume) }
      })
      .onRequest('session/list', ({ params }) => sessions.list(params.cwd ?? undefined, params.cursor ?? undefined))
    if (this.#options.usesEnvironment) this.#withLogin(app)
    return this.#withSessions(app)
  }

  #withSessions(app: AgentApp): AgentApp {
    const sessions = this.#sessions
    return app
      .onRequest('session/prompt', ({ params }) => withOwnErrors(sessions.get(params.sessionId).prompt(params.prompt)))
      .onNotification('session/cancel', ({ params }) => withOwnErrors(sessions.get(params.sessionId).cancel()))
      .onRequest('session/set_config_option', async ({ params: { sessionId, configId, value } }) => {
        const options = await withOwnErrors(sessions.get(sessionId).followed.setOption(configId, value))
        return { configOptions: optionsInVersion2(options) }
      })
      .onRequest('session/close', async ({ params: { sessionId } }) => {
        await withOwnErrors(sessions.get(sessionId).end())
        sessions.forget(sessionId)
      })
      .onRequest('session/delete', async ({ params: { sessionId } }) => await sessions.delete(sessionId))
  }

  #withLogin(app: AgentApp): void {
    const sessions = this.#sessions
    app
      .onRequest('auth/login', async ({ params: { methodId } }) => {
        if (methodId !== ENVIRONMENT.methodId)
          throw RequestError.invalidParams(undefined, `there is no method ${methodId}`)
        await sessions.host()
      })
      // The environment keeps its keys.
      .onRequest('auth/logout', () => sessions.close())
  }

  close(): void {
    this.#sessions.close()
  }

  #initialize({ capabilities = {} }: InitializeRequest): InitializeResponse {
    this.#capabilities = capabilities
    const { isLocal, usesEnvironment, version } = this.#options
    const isSetUp = isLocal && (capabilities.auth?.terminal ?? undefined) !== undefined
    const authMethods = [
      ...(usesEnvironment ? [ENVIRONMENT] : []),
      ...(isSetUp ? [{ methodId: SET_UP_ID, ...SET_UP }] : []),
    ]
    return {
      protocolVersion: PROTOCOL_VERSION,
      info: { name: 'agent-server', title: 'agent-server', version },
      capabilities: {
        session: { prompt: { image: {}, embeddedContext: {} }, mcp: { stdio: {}, http: {} }, delete: {} },
      },
      ...(authMethods.length > 0 && { authMethods }),
    }
  }

  #sessionOf({ view, host }: OpenedView, client: AgentContext): EditorSessionV2 {
    return new EditorSessionV2({ client, host, warn: this.#options.warn, capabilities: this.#capabilities }, view)
  }

  async #open(session: EditorSessionV2, { host }: OpenedView, prepare?: () => Promise<void>) {
    return optionsInVersion2(await this.#sessions.open(session, host, prepare))
  }
}
