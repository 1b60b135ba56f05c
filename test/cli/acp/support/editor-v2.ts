/** An editor of version 2: talks to an agent with the client of the protocol's own SDK. */
import type {
  ClientCapabilities,
  ClientContext,
  CreateElicitationRequest,
  CreateElicitationResponse,
  InitializeResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  Stream,
  UpdateSessionNotification,
} from '@agentclientprotocol/sdk/experimental/v2'
import { client } from '@agentclientprotocol/sdk/experimental/v2'
import { once } from 'node:events'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { until } from '../../../support/until.ts'
import type { AcpProcessOptions } from './acp-process.ts'
import { AcpProcess } from './acp-process.ts'

type Asked<T> = T & { readonly signal: AbortSignal }
type EditorOptions = AcpProcessOptions & { readonly capabilities?: ClientCapabilities }
export type State = Extract<SessionUpdate, { sessionUpdate: 'state_update' }>

export class EditorV2 implements AsyncDisposable {
  readonly updates: UpdateSessionNotification[] = []
  readonly permissions: Asked<RequestPermissionRequest>[] = []
  readonly questions: CreateElicitationRequest[] = []
  info: InitializeResponse | undefined
  onUpdate: () => void = () => {}
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
      .onRequest('elicitation/create', ({ params }) => {
        this.questions.push(params)
        return this.onQuestion(params)
      })
      .onNotification('session/update', ({ params }) => {
        this.updates.push(params)
        this.onUpdate()
      })
      .connect(stream)
  }

  /** Starts `agent-server acp`. */
  static async start({ capabilities, ...options }: EditorOptions): Promise<EditorV2> {
    const program = new AcpProcess(options)
    return await new EditorV2(program.stream, program).#initialized(capabilities)
  }

  static async over(stream: Stream, capabilities?: ClientCapabilities): Promise<EditorV2> {
    return await new EditorV2(stream).#initialized(capabilities)
  }

  async #initialized(capabilities: ClientCapabilities = {}): Promise<this> {
    const info = { name: 'test', version: '1' }
    this.info = await this.agent.request('initialize', { protocolVersion: 2, info, capabilities })
    return this
  }

  get agent(): ClientContext {
    return this.#connection.agent
  }

  /** Resolves when the connection has ended. */
  get closed(): Promise<void> {
    return this.#connection.closed
  }

  async begin(cwd: string): Promise<string> {
    return (await this.agent.request('session/new', { cwd })).sessionId
  }

  /** Returns the id of the message. */
  async send(sessionId: string, text: string): Promise<string> {
    const { messageId } = await this.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
    return messageId
  }

  /** Sends a prompt, and returns the state in which the agent is at rest again. */
  async prompt(sessionId: string, text: string): Promise<State> {
    const before = this.of(sessionId).length
    await this.send(sessionId, text)
    return await this.atRest(sessionId, before)
  }

  /** Waits until the agent has worked since then, and is idle. */
  async atRest(sessionId: string, since: number): Promise<State> {
    const states = () => this.of(sessionId).slice(since).filter(isState)
    const isOver = () => states().some(({ state }) => state !== 'idle') && states().at(-1)?.state === 'idle'
    await this.until('the end of the work', isOver)
    return states().at(-1)!
  }

  async resume(sessionId: string, cwd: string, replayFrom?: { type: 'start' } | { type: '_seq'; seq: number }) {
    const resumed = await this.agent.request('session/resume', {
      sessionId,
      cwd,
      ...(replayFrom && { replayFrom }),
    })
    await yieldToLoop()
    return resumed
  }

  /** Updates come before the answer, but their handlers run next to whoever waits for the answer. */
  async close(sessionId: string): Promise<void> {
    await this.agent.request('session/close', { sessionId })
    await yieldToLoop()
  }

  of = (sessionId: string): SessionUpdate[] =>
    this.updates.flatMap((each) => (each.sessionId === sessionId ? each.update : []))

  until = async (what: string, isTrue: () => boolean): Promise<void> => void (await until(what, async () => isTrue()))

  async kill(): Promise<void> {
    this.#connection.close()
    await this.#process?.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

export const isState = (update: SessionUpdate): update is State => update.sessionUpdate === 'state_update'
