/** Sends requests to other instances over authenticated connections. Repeats none. */
import { connect as connectSocket } from 'node:net'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Pool } from 'undici'
import { Problem } from '../contract/problem.ts'
import type { Peer } from '../storage/instances.ts'
import type { Channel } from './channel.ts'
import { greet } from './handshake.ts'

const CONNECT_MS = 5000

export type SentRequest = {
  readonly method: string
  /** With the query. */
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

export class PeerClient {
  readonly #key: Buffer
  /** By the number of the instance, whose address never changes. */
  readonly #pools = new Map<number, Promise<Pool>>()

  constructor(key: Buffer) {
    this.#key = key
  }

  /** Throws the `Problem` `owner_lost` if the peer did not answer. */
  async send(peer: Peer, { method, path, headers, body, signal }: SentRequest): Promise<PeerResponse> {
    const pool = await this.#poolOf(peer)
    try {
      const response = await pool.request({ method, path, headers, body: body ?? null, signal })
      return { status: response.statusCode, headers: response.headers, body: response.body }
    } catch (error) {
      throw lost(error instanceof NotReachedError ? 'It was not executed.' : 'It may have been executed.', error)
    }
  }

  /** The numbers of the instances that it has sent something to. */
  get known(): readonly number[] {
    return [...this.#pools.keys()]
  }

  /** Cuts the connections to an instance that has ended: one that was stopped, or has lost its network, closes none itself. */
  forget(instance: number): void {
    const pool = this.#pools.get(instance)
    this.#pools.delete(instance)
    void pool?.then((each) => each.destroy())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(async (pool) => (await pool).destroy()))
  }

  async #poolOf(peer: Peer): Promise<Pool> {
    const found = this.#pools.get(peer.instance)
    if (found) return await found
    const made = this.#open(peer)
    this.#pools.set(peer.instance, made)
    return await made
  }

  async #open({ instance, address }: Peer): Promise<Pool> {
    const { Pool: UndiciPool } = await import('undici')
    return new UndiciPool(address, {
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      connect: (_, done) => {
        // oxlint-disable promise/no-callback-in-promise -- undici takes no promise
        connectTo({ instance, address }, this.#key).then(
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods that undici calls
          (channel) => done(null, channel as unknown as Parameters<typeof done>[1] & object),
          (cause: unknown) => done(new NotReachedError('The instance could not be reached.', { cause }), null),
        )
        // oxlint-enable promise/no-callback-in-promise
      },
    })
  }
}

/** Resolves when this very instance has answered at its address. */
export async function connectTo({ instance, address }: Peer, key: Buffer): Promise<Channel> {
  const { hostname, port } = new URL(address)
  const socket = connectSocket({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80), noDelay: true })
  socket.setTimeout(CONNECT_MS, () => socket.destroy())
  const channel = await greet(socket, key, instance)
  socket.setTimeout(0)
  socket.removeAllListeners('timeout')
  return channel
}

class NotReachedError extends Error {}

const lost = (whether: string, cause: unknown) =>
  new Problem(
    'owner_lost',
    `The instance that has this conversation did not answer the request. ${whether} Read the conversation, then try again.`,
    { cause },
  )
