/** An editor: starts `agent-server acp` and talks to it with the client of the protocol's own SDK. */
import type {
  ClientCapabilities,
  ClientContext,
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
  SessionUpdate,
} from '@agentclientprotocol/sdk'
import { client, ndJsonStream } from '@agentclientprotocol/sdk'
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { Readable, Writable } from 'node:stream'
import { commandLine } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

export type EditorOptions = {
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly capabilities?: ClientCapabilities
}

type Asked<T> = T & { readonly signal: AbortSignal }

export class Editor implements AsyncDisposable {
  readonly child: ChildProcess
  /** Everything that the process has written to standard output. */
  output = ''
  errors = ''
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
  readonly #exited: Promise<number | null>

  private constructor({ args = [], env, cwd }: EditorOptions) {
    const [command, ...rest] = commandLine(['acp', ...args])
    this.child = spawn(command, rest, {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: process.env['TMPDIR'], ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(cwd !== undefined && { cwd }),
    })
    this.#exited = once(this.child, 'close').then(([code]) => code as number | null)
    this.child.stdin!.on('error', () => {}) // it was killed
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.errors += text))
    const lines = new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) => {
        this.output += Buffer.from(bytes).toString('latin1')
        controller.enqueue(bytes)
      },
    })
    const input = Readable.toWeb(this.child.stdout!) as ReadableStream<Uint8Array>
    const stream = ndJsonStream(Writable.toWeb(this.child.stdin!), input.pipeThrough(lines))
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

  static async start(options: EditorOptions): Promise<Editor> {
    const editor = new Editor(options)
    const clientCapabilities = options.capabilities ?? {}
    await editor.agent.request('initialize', { protocolVersion: 1, clientCapabilities })
    return editor
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
    this.child.stdin!.end()
    return await this.#exited
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
