/** Sends requests to other instances over authenticated connections. Repeats none. */
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { Pool } from 'undici'
import { Problem } from '../contract/problem.ts'
import type { Peer } from '../storage/instances.ts'
import type { Channel } from './channel.ts'
import { greet } from './handshake.ts'
import type { TlsMaterial } from './tls.ts'
import { explainTlsError, tlsFaultIn } from './tls.ts'

const CONNECT_MS = 5000

export type SentRequest = {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body: Readable | string | undefined
  /** Aborted when the client has left: then the owner sees that, too. */
  readonly signal: AbortSignal
}

export type PeerResponse = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** What an instance shows to others. `tls`: undefined if the connections are not encrypted. */
export type PeerCredentials = { readonly key: Buffer; readonly tls: TlsMaterial | undefined }

export class PeerClient {
  readonly #credentials: PeerCredentials
  readonly #onDisconnect: (instance: number) => void
  readonly #connectMs: number
  /** The key is the number of the instance, whose address never changes. */
  readonly #pools = new Map<number, { readonly peer: Peer; readonly opening: Promise<Pool> }>()

  /** `onDisconnect`: called when an instance has closed a connection, as one that ends closes all of them. */
  constructor(credentials: PeerCredentials, onDisconnect: (instance: number) => void, connectMs: number = CONNECT_MS) {
    this.#credentials = credentials
    this.#onDisconnect = onDisconnect
    this.#connectMs = connectMs
  }

  /** Throws the `Problem` `owner_lost` if the peer did not answer. */
  async send(peer: Peer, { method, path, headers, body, signal }: SentRequest): Promise<PeerResponse> {
    const pool = await this.#poolOf(peer)
    try {
      const response = await pool.request({ method, path, headers, body: body ?? null, signal })
      return { status: response.statusCode, headers: response.headers, body: response.body }
    } catch (error) {
      if (!(error instanceof NotReachedError)) throw lostConnection('It may have been executed.', error)
      const fault = tlsFaultIn(error)
      throw fault === undefined ? lostConnection('It was not executed.', error) : notTrusted(fault, error)
    }
  }

  /** The numbers of the instances that it has sent something to. */
  get known(): readonly number[] {
    return [...this.#pools.keys()]
  }

  /** Cuts the connections to an instance that has ended: one that was stopped, or has lost its network, closes none itself. */
  forget(instance: number): void {
    const pool = this.#pools.get(instance)?.opening
    this.#pools.delete(instance)
    void pool?.then((each) => each.destroy())
  }

  /**
   * Cuts the connections to an instance from which nothing comes back, also on two new ones: requests would wait for as long as the
   * kernel repeats what it has sent, which is many minutes. After a refusal they continue, because the network works.
   */
  async cutSilent(): Promise<void> {
    const looks = Array.from(this.#pools.values(), async ({ peer, opening }) => {
      const { stats } = await opening
      if (stats.running > 0 && (await this.#isSilent(peer)) && (await this.#isSilent(peer))) this.forget(peer.instance)
    })
    await Promise.all(looks)
  }

  async #isSilent(peer: Peer): Promise<boolean> {
    try {
      const channel = await connectTo(peer, this.#credentials, this.#connectMs)
      channel.destroy()
      return false
    } catch (error) {
      return isSilence(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(async ({ opening }) => (await opening).destroy()))
  }

  async #poolOf(peer: Peer): Promise<Pool> {
    const knownPool = this.#pools.get(peer.instance)
    if (knownPool) return await knownPool.opening
    const opening = this.#open(peer)
    this.#pools.set(peer.instance, { peer, opening })
    return await opening
  }

  async #open({ instance, address }: Peer): Promise<Pool> {
    const { Pool: UndiciPool } = await import('undici')
    const pool = new UndiciPool(address, {
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      connect: (_, callback) => {
        // oxlint-disable promise/no-callback-in-promise -- undici takes no promise
        connectTo({ instance, address }, this.#credentials, this.#connectMs).then(
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods that undici calls
          (channel) => callback(null, channel as unknown as Parameters<typeof callback>[1] & object),
          (cause: unknown) => callback(new NotReachedError('The instance could not be reached.', { cause }), null),
        )
        // oxlint-enable promise/no-callback-in-promise
      },
    })
    return pool.on('disconnect', () => this.#onDisconnect(instance))
  }
}

/** What the kernel says when a network or a host does not answer. */
const SILENT_CODES: ReadonlySet<unknown> = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ETIMEDOUT'])

function isSilence(error: unknown): boolean {
  if (error instanceof SilentError) return true
  return error instanceof Error && (('code' in error && SILENT_CODES.has(error.code)) || isSilence(error.cause))
}

/** Resolves when this very instance has answered at its address. */
export async function connectTo(
  { instance, address }: Peer,
  { key, tls }: PeerCredentials,
  connectMs: number = CONNECT_MS,
): Promise<Channel> {
  const { protocol, hostname, port } = new URL(address)
  if ((protocol === 'https:') !== (tls !== undefined)) throw new MixedError(address)
  const place = { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || (tls ? 443 : 80)) }
  const socket = tls ? connectTls({ ...place, ...tls, ...TLS_OPTIONS }) : connectSocket({ ...place, noDelay: true })
  socket.setTimeout(connectMs, () => socket.destroy(new SilentError('The instance did not answer in time.')))
  if (tls) await once(socket, 'secureConnect')
  const channel = await greet(socket, key, instance).catch((error: unknown) => {
    throw explainTlsError(error, tls)
  })
  socket.setTimeout(0)
  socket.removeAllListeners('timeout')
  return channel
}

const TLS_OPTIONS = {
  minVersion: 'TLSv1.3',
  // The handshake that follows proves which instance it is: a name in the certificate would prove less.
  checkServerIdentity: () => undefined,
} as const

class NotReachedError extends Error {}

class SilentError extends Error {}

/** Clients read the message: only the log shows the address. */
class MixedError extends Error {
  readonly code = 'ERR_TLS_MIXED'
  readonly address: string

  constructor(address: string) {
    super('That instance and this one do not both use TLS; set OPENHANDS_CLUSTER_TLS_* at all or at none')
    this.address = address
  }
}

const notTrusted = (fault: string, cause: unknown) =>
  new Problem(
    'owner_lost',
    `The instance that has this conversation could not be reached with TLS: ${fault} The request was not executed. Correct the certificates of the instances (OPENHANDS_CLUSTER_TLS_*), then try again.`,
    { cause },
  )

const lostConnection = (whether: string, cause: unknown) =>
  new Problem(
    'owner_lost',
    `The instance that has this conversation did not answer the request. ${whether} Read the conversation, then try again.`,
    { cause },
  )
