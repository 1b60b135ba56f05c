/**
 * The proxy of one conversation: accepts connections from its sandboxes, checks whether each is permitted, and forwards
 * it. Only this conversation can connect, so no authentication is needed.
 */
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { FirstBytes } from './first-bytes.ts'
import type { ConnectionPermits } from './connection-permits.ts'
import { createHandshake } from './handshake.ts'
import type { Host } from './host.ts'
import { formatTarget } from './host.ts'
import type { ProxyRefusal, Request, Step } from './proxy-request.ts'
import type { OutboundConnector } from './outbound-connector.ts'
import { AddressDenied } from './outbound-connector.ts'
import { splice } from './splice.ts'

/** `asked`: a user has allowed this connection. `advice` is a sentence for the reader of the refusal. */
export type Judgement =
  | { readonly allowed: true; readonly isApproved: boolean }
  | { readonly allowed: false; readonly reason: string; readonly advice: string }

export type ProxyAccess = {
  readonly host: Host
  readonly port: number
  readonly outcome: ProxyOutcome
  readonly reason: string
}
export type ProxyOutcome = 'allowed' | 'denied' | 'failed'

export type ProxyDeps = {
  /** May wait for a user. The signal aborts when the connection ends. Must not reject for any other reason. */
  readonly judge: (host: Host, port: number, signal: AbortSignal) => Promise<Judgement>
  /** Returns true if a permitted connection is still permitted. */
  readonly isStillAllowed: (target: Target) => boolean
  readonly reach: OutboundConnector
  readonly permits: ConnectionPermits
  /** Called once per request. Must not throw. */
  readonly onAccess: (access: ProxyAccess) => void
  /** Redacts the name of a host, and what is said about it. */
  readonly redact: (text: string) => string
}

const HANDSHAKE_MS = 30_000
const IDLE_MS = 30 * 60_000
const HALF_OPEN_MS = 60_000
/** Gives a client time to read why it was refused. */
const LINGER_MS = 2000

export type Target = { readonly host: Host; readonly port: number; readonly isApproved: boolean }

type Live = { readonly client: Socket; target: Target | undefined }

export class NetworkProxy {
  readonly #deps: ProxyDeps
  readonly #live = new Set<Live>()
  readonly #servers = new Set<Server>()
  #isClosed = false

  constructor(deps: ProxyDeps) {
    this.#deps = deps
  }

  get connections(): number {
    return this.#live.size
  }

  /** Takes over a socket that listens in a sandbox. The returned function closes it with its connections. */
  adopt(listener: Server): () => void {
    const clients = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true }, (client) => {
      clients.add(client)
      client.once('close', () => clients.delete(client))
      void this.#serve(client) // it never rejects
    })
    const end = () => {
      this.#servers.delete(server)
      server.close()
      listener.close()
      for (const client of clients) client.destroy()
    }
    server.on('error', end)
    if (this.#isClosed) listener.close()
    else this.#servers.add(server.listen(listener))
    return end
  }

  /** Ends connections that are not permitted any more. */
  recheck(): void {
    for (const { client, target } of this.#live)
      if (target && !this.#deps.isStillAllowed(target)) client.resetAndDestroy()
  }

  close(): void {
    this.#isClosed = true
    for (const server of this.#servers) server.close()
    this.#servers.clear()
    for (const { client } of this.#live) client.destroy()
  }

  async #serve(client: Socket): Promise<void> {
    client.on('error', () => {})
    const release = this.#isClosed ? undefined : this.#deps.permits.take()
    if (!release) return void client.destroy()
    const live: Live = { client, target: undefined }
    this.#live.add(live)
    const over = new AbortController()
    const abort = () => over.abort()
    client.once('close', abort)
    try {
      await this.#talk(live, over.signal)
    } catch {
      client.destroy() // it disconnected, or took too long to send its request
    } finally {
      client.off('close', abort)
      this.#live.delete(live)
      release()
    }
  }

  async #talk(live: Live, over: AbortSignal): Promise<void> {
    const { client } = live
    const bytes = new FirstBytes(client)
    const request = await readRequest(client, bytes, AbortSignal.any([over, AbortSignal.timeout(HANDSHAKE_MS)]))
    if (!request) return await sayGoodbye(client)
    const connection = await this.#connect(request, over)
    if ('refusal' in connection) return await sayGoodbye(client, connection.refusal)
    const { socket, target } = connection
    live.target = target
    // The policy may have changed since the decision.
    if (client.destroyed || !this.#deps.isStillAllowed(target)) {
      socket.destroy()
      return void client.destroy()
    }
    if (request.accepted.length > 0) client.write(request.accepted)
    try {
      await passOn(request, client, bytes.rest, socket, over)
    } finally {
      socket.destroy()
    }
  }

  async #connect(
    { host, port, refused }: Request,
    over: AbortSignal,
  ): Promise<{ readonly socket: Socket; readonly target: Target } | { readonly refusal: Uint8Array }> {
    const { judge, reach, onAccess, redact } = this.#deps
    const refuse = (why: ProxyRefusal, outcome: ProxyOutcome, reason: string, advice = '') => {
      onAccess({ host, port, outcome, reason })
      const sentence = `${sentences[why]} ${redact(formatTarget(host, port))}: ${redact(reason)}. ${advice}`.trim()
      return { refusal: refused(why, sentence) }
    }
    const judgement = await judge(host, port, over)
    if (!judgement.allowed) return refuse('denied', 'denied', judgement.reason, judgement.advice)
    try {
      const socket = await reach.connect(host, port, over)
      onAccess({ host, port, outcome: 'allowed', reason: 'permitted' })
      return { socket, target: { host, port, isApproved: judgement.isApproved } }
    } catch (error) {
      over.throwIfAborted()
      if (error instanceof AddressDenied) return refuse('denied', 'denied', error.message)
      return refuse('unreachable', 'failed', `it could not be reached (${failureOf(error)})`)
    }
  }
}

const sentences: Readonly<Record<ProxyRefusal, string>> = {
  denied: 'The network policy of this conversation refused',
  unreachable: 'The network proxy could not connect to',
}

/** Resolves when both sides are closed, and rejects if one fails before they are connected. */
async function passOn(request: Request, client: Socket, rest: Uint8Array, socket: Socket, over: AbortSignal) {
  socket.on('error', () => {})
  let isAllPassedOn = request.more === 'all'
  socket.write(isAllPassedOn ? Buffer.concat([request.head, rest]) : request.head)
  if (request.more === 'if_upgraded') {
    const answer = await readUpgradeAnswer(socket, AbortSignal.any([over, AbortSignal.timeout(IDLE_MS)]))
    client.write(answer.bytes)
    if (answer.isAgreed) socket.write(rest)
    isAllPassedOn = answer.isAgreed
  }
  if (!isAllPassedOn && rest.length > 0) socket.end()
  await splice(client, socket, { idleMs: IDLE_MS, halfOpenMs: HALF_OPEN_MS }, isAllPassedOn ? 'both' : 'answer')
}

/** Returns undefined if the client has ended, or was sent an error about its request. */
async function readRequest(client: Socket, bytes: FirstBytes, signal: AbortSignal): Promise<Request | undefined> {
  const parse = createHandshake()
  for (;;) {
    const step: Step | undefined = await bytes.read(parse, signal)
    if (step?.kind !== 'request' && step?.kind !== 'reply') {
      if (step) client.write(step.bytes)
      return undefined
    }
    bytes.use(step.used)
    if (step.kind === 'request') return step.request
    client.write(step.bytes)
  }
}

/**
 * Reads the remaining input: closing immediately would discard the reply before a client that is still sending reads
 * it.
 */
async function sayGoodbye(client: Socket, words?: Uint8Array): Promise<void> {
  if (client.destroyed) return
  if (words) client.write(words)
  client.end()
  client.resume()
  const timer = setTimeout(() => client.destroy(), LINGER_MS)
  await new Promise((resolve) => client.once('close', resolve))
  clearTimeout(timer)
}

const failureOf = (error: unknown) =>
  error instanceof Error && 'code' in error
    ? String(error.code)
    : error instanceof Error && error.name === 'TimeoutError'
      ? 'it did not answer'
      : 'it failed'

const AGREED = /^HTTP\/1\.[01] 101 /
const STATUS_LENGTH = 'HTTP/1.1 101 '.length

/** Reads whether the server agrees to an upgrade; `bytes` is what was read of the response. Rejects if the connection breaks, and with the signal's reason. */
async function readUpgradeAnswer(
  target: Socket,
  signal: AbortSignal,
): Promise<{ readonly isAgreed: boolean; readonly bytes: Uint8Array }> {
  const answer = new FirstBytes(target)
  const isAgreed = await answer.read(
    (bytes) => (bytes.length < STATUS_LENGTH ? undefined : AGREED.test(bytes.toString('latin1', 0, STATUS_LENGTH))),
    signal,
  )
  return { isAgreed: isAgreed === true, bytes: answer.rest }
}
