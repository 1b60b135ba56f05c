/** An editor of version 1: talks to an agent with the client of the protocol's own SDK. */
import type {
  ClientCapabilities,
  ClientContext,
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
  SessionUpdate,
  Stream,
} from '@agentclientprotocol/sdk'
import { client } from '@agentclientprotocol/sdk'
import { once } from 'node:events'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { until } from '../../../support/until.ts'
import type { AcpProcessOptions } from './acp-process.ts'
import { AcpProcess } from './acp-process.ts'

type EditorOptions = AcpProcessOptions & { readonly capabilities?: ClientCapabilities }

type Asked<T> = T & { readonly signal: AbortSignal }

export class Editor implements AsyncDisposable {
  readonly updates: SessionNotification[] = []
  readonly permissions: Asked<RequestPermissionRequest>[] = []
  /** By default nobody answers. */
  onPermission: (asked: Asked<RequestPermissionRequest>) => Promise<RequestPermissionResponse> = async ({ signal }) => {
    await once(signal, 'abort')
    return { outcome: { outcome: 'cancelled' } }
  }
  onQuestion: (asked: CreateElicitationRequest) => Promise<CreateElicitationResponse> = async () => ({
    action: 'cancel',
  })
  readonly #connection
  readonly #process: AcpProcess | undefined

  private constructor(stream: Stream, program?: AcpProcess) {
    this.#process = program
    this.#connection = client({ name: 'test' })
      .onRequest('session/request_permission', async ({ params, signal }) => {
        const asked = { ...params, signal }
        this.permissions.push(asked)
        return await this.onPermission(asked)
      })
      .onRequest('elicitation/create', ({ params }) => this.onQuestion(params))
      .onNotification('session/update', ({ params }) => void this.updates.push(params))
      .connect(stream)
  }

  /** Starts `agent-server acp`. */
  static async start({ capabilities, ...options }: EditorOptions): Promise<Editor> {
    const program = new AcpProcess(options)
    return await new Editor(program.stream, program).#initialized(capabilities)
  }

  static async over(stream: Stream, capabilities?: ClientCapabilities): Promise<Editor> {
    return await new Editor(stream).#initialized(capabilities)
  }

  async #initialized(clientCapabilities: ClientCapabilities = {}): Promise<this> {
    await this.agent.request('initialize', { protocolVersion: 1, clientCapabilities })
    return this
  }

  /** Everything that the process has written to standard output. */
  get output(): string {
    return this.#process?.output ?? ''
  }

  get errors(): string {
    return this.#process?.errors ?? ''
  }

  get agent(): ClientContext {
    return this.#connection.agent
  }

  /** Its updates come before the answer, but their handlers run next to whoever waits for the answer. */
  prompt = async (sessionId: string, text: string) => {
    const end = await this.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
    await yieldToLoop()
    return end
  }

  load = async (sessionId: string, cwd: string) => {
    const loaded = await this.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
    await yieldToLoop()
    return loaded
  }

  of = (sessionId: string): SessionUpdate[] =>
    this.updates.flatMap((each) => (each.sessionId === sessionId ? each.update : []))

  /** What the agent has said in it. */
  said = (sessionId: string): string =>
    this.of(sessionId)
      .map((update) =>
        update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '',
      )
      .join('')

  until = async (what: string, isTrue: () => boolean): Promise<void> => void (await until(what, async () => isTrue()))

  /** Closes standard input, and returns the exit code. */
  async leave(): Promise<number | null> {
    return (await this.#process?.leave()) ?? null
  }

  async kill(): Promise<void> {
    this.#connection.close()
    await this.#process?.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
