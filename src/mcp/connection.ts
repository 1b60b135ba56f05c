/**
 * One configured MCP server: connected in the background, and again with backoff when the connection ends. Nothing that
 * the server does fails the conversation.
 */
import type { McpServer } from '../contract/mcp/mcp-server.ts'
import type { McpServerView, McpStatus } from '../contract/mcp/mcp-status.ts'
import { loadSdk } from './load-sdk.ts'
import type { SecretSource } from './named-secrets.ts'
import { MissingSecret, withSecrets } from './named-secrets.ts'
import type { OauthDeps } from './oauth/server-authorization.ts'
import { ServerAuthorization } from './oauth/server-authorization.ts'
import type { PendingAuthorization } from './oauth/pending-authorizations.ts'
import type { Session } from './session.ts'
import { openSession } from './session.ts'
import { reasonOf } from './calls/reason-of.ts'
import { ListRefresh } from './tools/list-refresh.ts'
import type { OfferedTools } from './tools/offered-tools.ts'
import { inFormerOrder, offerTools } from './tools/offered-tools.ts'
import type { TransportDeps } from './transports/open-transport.ts'
import { openTransport } from './transports/open-transport.ts'
import { backoffMs } from '../lib/backoff.ts'
import { sleepUnlessAborted } from '../lib/bounded-wait.ts'

/** Doubled with each attempt, in milliseconds. */
const BACKOFF = { firstMs: 1000, longestMs: 5 * 60_000 }
/** The number of attempts, after which only the next run tries again. */
const MAX_ATTEMPTS = 10
/** A connection that lasted this long starts the count from the beginning. */
const STABLE_MS = 60_000
const MAX_ERROR_CHARS = 1000

export type ConnectionDeps = TransportDeps & {
  readonly secrets: SecretSource
  readonly oauth: OauthDeps
  readonly version: string
  /** The first one is the workdir. */
  readonly directories: () => readonly string[]
  /** Its status or its tools have changed. Must not throw. */
  readonly onChange: (connection: McpConnection) => void
}

const NO_TOOLS: OfferedTools = { tools: [], leftOut: [] }

export class McpConnection {
  readonly name: string
  readonly server: McpServer
  readonly #deps: ConnectionDeps
  readonly #authorization: ServerAuthorization
  #status: McpStatus = 'pending'
  #error: string | undefined
  #session: Session | undefined
  /** The tools stay while it is reconnected, so that the list of the model does not change meanwhile. */
  #offered = NO_TOOLS
  #attempts = 0
  /** The configuration of the last attempt, with its secrets. */
  #used: string | undefined
  /** The current life: attempts, connections and waits, until `close` or a restart. */
  #life: { readonly abort: AbortController; readonly over: Promise<void> } | undefined
  #firstTried = Promise.withResolvers<void>()
  /** Settles when everything that was closed has ended. */
  #closed: Promise<void> = Promise.resolve()
  #restarting: Promise<void> | undefined
  #tried = Promise.withResolvers<void>()
  /** Ends the present connection. */
  #onEnd: (reason: string) => void = () => {}
  readonly #toolRefresh = new ListRefresh(() => this.#refresh())

  /** `former`: it begins when this has resolved. */
  constructor(name: string, server: McpServer, deps: ConnectionDeps, former?: Promise<void>) {
    this.name = name
    this.server = server
    this.#deps = deps
    if (former) this.#closed = former
    this.#authorization = new ServerAuthorization(name, deps.oauth, deps.show)
  }

  get status(): McpStatus {
    return this.#status
  }

  get error(): string | undefined {
    return this.#error
  }

  /** The URL at which the user authorizes it, with the status `needs_auth`. */
  get authorizationUrl(): string | undefined {
    return this.#status === 'needs_auth' ? this.#authorization.url : undefined
  }

  get offered(): OfferedTools {
    return this.#offered
  }

  /** The connection, if there is one now. */
  get session(): Session | undefined {
    return this.#session?.hasEnded ? undefined : this.#session
  }

  get view(): McpServerView {
    const { tools, leftOut } = this.#offered
    const serverName = this.session?.serverName
    return {
      name: this.name,
      transport: this.server.transport,
      status: this.#status,
      ...(this.#error !== undefined && { error: this.#error }),
      ...(serverName !== undefined && { server: serverName }),
      ...(this.authorizationUrl !== undefined && { authorization_url: this.authorizationUrl }),
      tools: tools.map(({ name }) => name),
      ...(leftOut.length > 0 && { left_out: [...leftOut] }),
    }
  }

  /**
   * Begins to connect, unless it does already; connects again if its secrets have changed. Resolves when the first
   * attempt is over.
   */
  start(): Promise<void> {
    if (this.#life && this.#used !== undefined && this.#used !== this.#fill()) return this.restart()
    if (this.authorizationUrl !== undefined) return Promise.resolve() // it waits for the user
    if (!this.#life) {
      const abort = new AbortController()
      this.#firstTried = Promise.withResolvers()
      // Its former program must have ended: the end of one would end the other.
      this.#life = { abort, over: this.#closed.then(() => this.#live(abort.signal)) }
    }
    return this.#firstTried.promise
  }

  /** Ends the connection, and connects again at once. Resolves when that was tried. Requests in between share it. */
  restart(): Promise<void> {
    return (this.#restarting ??= this.#restart().finally(() => (this.#restarting = undefined)))
  }

  async #restart(): Promise<void> {
    await this.close()
    await this.start()
  }

  /** Completes its authorization, and connects again. Rejects with the reason. */
  async authorize(pending: PendingAuthorization, answer: URLSearchParams): Promise<void> {
    const filledServer = withSecrets(this.name, this.server, this.#deps.secrets)
    await this.#authorization.finish(await loadSdk(), { server: filledServer, deps: this.#deps }, { pending, answer })
  }

  /** Ends the connection if the server refuses requests until the user authorizes it. */
  endIfUnauthorized(): boolean {
    if (this.#authorization.isRequested) this.#onEnd('it needs an authorization')
    return this.#authorization.isRequested
  }

  /** Resolves when its process has ended. It can be started again. */
  close(): Promise<void> {
    const life = this.#life
    this.#life = undefined
    this.#attempts = 0
    this.#firstTried.resolve()
    life?.abort.abort(new Error('The connection was closed.'))
    this.#authorization.forget()
    this.#closed = this.#afterwards([this.#closed, this.#end(), life?.over])
    return this.#closed
  }

  async #afterwards(ends: readonly unknown[]): Promise<void> {
    await Promise.all(ends)
    if (!this.#life) this.#set('pending')
  }

  async #live(signal: AbortSignal): Promise<void> {
    const { promise: closing, resolve: close } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => close(), { once: true })
    while (!signal.aborted && this.#attempts < MAX_ATTEMPTS) {
      this.#attempts++
      const wasConnected = await this.#attempt(signal, closing)
      this.#firstTried.resolve()
      await this.#end()
      if (signal.aborted || this.#attempts >= MAX_ATTEMPTS) break
      await sleepUnlessAborted(wasConnected && this.#attempts === 1 ? 0 : backoffMs(this.#attempts, BACKOFF), signal)
    }
    // A later run tries again.
    if (!signal.aborted) {
      this.#life = undefined
      this.#attempts = 0
    }
  }

  /** One connection, from the handshake to its end. Returns whether there was one. */
  async #attempt(signal: AbortSignal, closing: Promise<void>): Promise<boolean> {
    const ending = Promise.withResolvers<string>()
    try {
      this.#set('connecting', this.#error)
      this.#onEnd = ending.resolve
      this.#authorization.forget()
      await this.#connect(signal)
      this.#firstTried.resolve()
      const since = performance.now()
      const reason = await Promise.race([ending.promise, closing])
      if (performance.now() - since > STABLE_MS) this.#attempts = 1
      if (reason !== undefined) this.#fail(reason)
      return true
    } catch (error) {
      if (signal.aborted) return false
      this.#fail(reasonOf(error))
      if (error instanceof MissingSecret) this.#attempts = MAX_ATTEMPTS
      return false
    }
  }

  /** A server that waits for its user is not tried again meanwhile. */
  #fail(reason: string): void {
    if (!this.#authorization.isRequested) return this.#set('failed', reason)
    this.#attempts = MAX_ATTEMPTS
    this.#set('needs_auth')
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { name, server } = this
    const { secrets, version, directories } = this.#deps
    const sdk = await loadSdk()
    signal.throwIfAborted()
    const filledServer = withSecrets(name, server, secrets)
    this.#used = JSON.stringify(filledServer)
    const session = await openSession(
      {
        sdk,
        name,
        server: filledServer,
        version,
        directories,
        show: this.#deps.show,
        open: (limitedSignal) =>
          openTransport(sdk, name, filledServer, this.#deps, {
            signal: limitedSignal,
            provider: this.#authorization.providerFor(filledServer),
          }),
        onToolsChanged: () => this.#toolRefresh.change(),
        onEnd: this.#onEnd,
      },
      signal,
    )
    this.#session = session
    try {
      await this.#readTools(session, signal)
    } catch (error) {
      throw session.hasEnded ? new Error(session.complaint ?? 'the connection has ended') : error
    }
    this.#set('connected')
  }

  /** The configuration with its secrets, as text; empty if one is missing. */
  #fill(): string {
    try {
      return JSON.stringify(withSecrets(this.name, this.server, this.#deps.secrets))
    } catch {
      return '' // the next attempt says which one
    }
  }

  async #readTools(session: Session, signal: AbortSignal): Promise<void> {
    const { items, isCut } = await session.listTools(signal)
    const { tools, leftOut } = await offerTools(this.name, this.server, items, this.#deps.show)
    this.#offered = {
      tools: inFormerOrder(tools, this.#offered.tools),
      leftOut: isCut ? [...leftOut, 'The server lists more tools than are read.'] : leftOut,
    }
  }

  async #refresh(): Promise<void> {
    const life = this.#life
    const { session } = this
    if (!life || !session) return
    await this.#readTools(session, life.abort.signal)
    if (life === this.#life) this.#deps.onChange(this)
  }

  async #end(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    await session?.close().catch(() => {}) // nothing is left that could be done
  }

  /** Resolves when the present attempt is over, immediately if no attempt is in progress. */
  get tried(): Promise<void> {
    return this.#tried.promise
  }

  #set(status: McpStatus, error?: string): void {
    if (status === 'connecting') this.#tried = Promise.withResolvers()
    else this.#tried.resolve()
    this.#status = status
    this.#error = error === undefined ? undefined : this.#deps.show(error, MAX_ERROR_CHARS)
    this.#deps.onChange(this)
  }
}
