/** This instance among those of one database: listens for the others, and sends requests to the one that owns a conversation. */
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Problem } from '../contract/problem.ts'
import type { Instances, Peer, ReplayTable } from '../storage/instances.ts'
import { admit, deriveClusterKey } from './handshake.ts'
import type { PeerCredentials, PeerResponse, SentRequest } from './peer-client.ts'
import { PeerClient, connectTo } from './peer-client.ts'
import type { Rights } from './rights.ts'
import { readRights, rightsHeader } from './rights.ts'
import type { TlsMaterial } from './tls.ts'
import { requireTrusted, tlsFaultIn } from './tls.ts'
import { createHmac } from 'node:crypto'

export type ClusterSettings = {
  readonly host: string
  readonly port: number
  /** Undefined: the address that it listens on. */
  readonly advertiseUrl: string | undefined
  /** What all instances should have in common: values by name, which nobody else sees. */
  readonly settings: Readonly<Record<string, string>>
}

export type ClusterOptions = {
  readonly instances: Instances
  readonly replays?: Pick<ReplayTable, 'otherOwnerOf'> | undefined
  /** The first data key: all instances of a database have it. */
  readonly keyMaterial: string
  /** Undefined: connections are not encrypted. */
  readonly tls: TlsMaterial | undefined
  /** Called with the first refused connection, and then at most once in `reportMs`: anybody can make thousands. */
  readonly onRefused: (error: unknown) => void
  readonly reportMs?: number
  /** Called with errors of certificates at other instances. */
  readonly onFault: (error: unknown) => void
  /** Called for each request that was sent to another instance. */
  readonly onForwarded?: ((outcome: 'answered' | 'failed') => void) | undefined
  /** Resolves to true if the conversation is open in this instance, and to false when it is closed. */
  readonly isHere?: (conversationId: string) => Promise<boolean>
  /** Returns true if this instance has no free slot for a run, and others can read the files of its conversations. */
  readonly leavesToOthers?: () => boolean
  /** How long requests are sent to the known owner of their conversation without a question to the database, in milliseconds. */
  readonly ownerMs?: number
  /** How often it is looked whether an instance that requests were sent to has ended, in milliseconds. */
  readonly checkMs?: number
  /** How often it is looked whether such an instance is silent, and how long an answer to a new connection may take; in milliseconds. */
  readonly silence?: { readonly lookMs: number; readonly connectMs: number }
}

const CHECK_MS = 3000

/** A question to the database takes as long as the owner's answer to a short request. */
const OWNER_MS = 1000
const MAX_OWNERS = 10_000

const SILENCE = { lookMs: 10_000, connectMs: undefined }

const REPORT_MS = 10_000

const TLS_OPTIONS = {
  requestCert: true,
  // The connection is closed by `requireTrusted`, which reports the reason.
  rejectUnauthorized: false,
  minVersion: 'TLSv1.3',
  handshakeTimeout: 5000,
  allowHalfOpen: true,
  noDelay: true,
} as const
/** Connections that have not proven yet that they are of an instance: everybody who reaches the port can open them. */
const MAX_UNPROVEN = 256

const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

export class Cluster implements AsyncDisposable {
  readonly #options: ClusterOptions
  readonly #credentials: PeerCredentials
  readonly #peers: PeerClient
  readonly #connections = new WeakSet<object>()
  readonly #sockets = new Set<Socket>()
  /** The key is the address of the other end, which TLS keeps. A map keeps the order in which they came. */
  readonly #unproven = new Map<string, Socket>()
  readonly #timers: readonly NodeJS.Timeout[]
  #reportedAt = -Infinity
  #isLeaving = false
  /** The owners that the database has named last, by the ids of their conversations. */
  readonly #owners = new Map<string, { readonly peer: Peer; readonly at: number }>()
  readonly #server: Server
  #settings: SettingsHashes = {}

  constructor(options: ClusterOptions) {
    this.#options = options
    const { tls, checkMs = CHECK_MS, silence: { lookMs, connectMs } = SILENCE } = options
    this.#credentials = { key: deriveClusterKey(options.keyMaterial), tls }
    this.#peers = new PeerClient(this.#credentials, (instance) => this.#forgetOwner(instance), connectMs)
    this.#server = tls
      ? createTlsServer({ ...tls, ...TLS_OPTIONS }).on('tlsClientError', (error) => this.#refuse(error))
      : createServer({ allowHalfOpen: true, noDelay: true })
    this.#timers = [
      setInterval(() => void this.#forgetEnded(), checkMs).unref(),
      setInterval(() => void this.#peers.cutSilent(), lookMs).unref(),
    ]
  }

  /**
   * Listens, and passes authenticated connections to the server. Returns the address that the others use. Throws if the address
   * does not lead back to this instance.
   */
  async listen(http: HttpServer, { host, port, advertiseUrl, settings }: ClusterSettings): Promise<string> {
    const { instances, tls } = this.#options
    this.#server.on('connection', (socket) => this.#keep(socket))
    this.#server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => void this.#accept(socket, http))
    this.#server.listen({ host, port })
    await once(this.#server, 'listening')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens, and not on a path
    const boundAddress = this.#server.address() as AddressInfo
    const name = boundAddress.family === 'IPv6' ? `[${boundAddress.address}]` : boundAddress.address
    const address = advertiseUrl ?? `${tls ? 'https' : 'http'}://${name}:${boundAddress.port}`
    const channel = await connectTo({ instance: instances.own, address }, this.#credentials)
    channel.destroy()
    this.#settings = hashSettings(settings, this.#credentials.key)
    await instances.announce(address, this.#settings)
    return address
  }

  /** Resolves to the other instances that have other settings, with the names of these, after `listen`. */
  async differences(): Promise<{ address: string; names: string[] }[]> {
    const others = await this.#options.instances.others()
    const differing = others.map(({ address, settings }) => ({
      address,
      names: differingSettings(this.#settings, settings),
    }))
    return differing.filter(({ names }) => names.length > 0)
  }

  /** Returns the rights that another instance has sent; undefined for a connection that is not of one. Throws a `Problem`. */
  rightsOn(connection: object, header: string | undefined): Rights | undefined {
    if (!this.#connections.has(connection)) return undefined
    const rights = readRights(header)
    if (rights) return rights
    throw new Problem('unauthorized', 'Send requests with a key to the public address of this server.')
  }

  /**
   * Returns the other instance that must answer a request; undefined if this one does. A conversation without an owner is for
   * the least loaded one if no run can begin here. What another one has sent is forwarded if this one has left the conversation
   * since.
   */
  async ownerElsewhere(connection: object, conversationId: string): Promise<Peer | undefined> {
    const isForwarded = this.#connections.has(connection)
    const { instances, leavesToOthers } = this.#options
    if ((isForwarded || this.#isLeaving) && (await this.#isHere(conversationId))) return undefined
    const owner = await instances.otherOwnerOf(conversationId)
    this.#noteOwner(conversationId, owner)
    if (owner) return owner
    if (this.#isLeaving) return await this.successor()
    return !isForwarded && leavesToOthers?.() ? await instances.leastLoadedFor(conversationId) : undefined
  }

  /** Does the same without a question to the database if it has named the owner a moment ago: that one may have left it since. */
  async likelyOwnerElsewhere(connection: object, conversationId: string): Promise<Peer | undefined> {
    const { ownerMs = OWNER_MS } = this.#options
    const owner = this.#owners.get(conversationId)
    const isRecent = owner !== undefined && performance.now() - owner.at < ownerMs
    const mayAsk = isRecent && !this.#isLeaving && !this.#connections.has(connection)
    if (mayAsk && !(await this.#isHere(conversationId))) return owner.peer
    return await this.ownerElsewhere(connection, conversationId)
  }

  /** Returns the instance that must answer a create with this key, because it has answered one before. */
  async ownerOfKey(connection: object, key: string): Promise<Peer | 'here' | undefined> {
    const { instances } = this.#options
    const owner = await instances.ownerOfKey(key)
    if (owner?.instance === instances.own) return 'here'
    return this.#connections.has(connection) ? undefined : owner
  }

  /** Returns the other instance that must cancel this replay. */
  async ownerOfReplay(connection: object, id: string): Promise<Peer | undefined> {
    return this.#connections.has(connection) ? undefined : await this.#options.replays?.otherOwnerOf(id)
  }

  /** Returns the instance that must answer a request for something new; undefined if this one does. */
  async successor(): Promise<Peer | undefined> {
    return this.#isLeaving ? await this.#options.instances.successor() : undefined
  }

  /** Makes other instances answer requests about all conversations that are not here any more. */
  async leave(): Promise<void> {
    this.#isLeaving = true
    await this.#options.instances.leave()
  }

  /** Throws the `Problem` `owner_lost`. */
  async send(peer: Peer, request: SentRequest, rights: Rights): Promise<PeerResponse> {
    const headers = { ...request.headers, authorization: rightsHeader(rights) }
    const { onForwarded } = this.#options
    try {
      const response = await this.#peers.send(peer, { ...request, headers })
      onForwarded?.('answered')
      return response
    } catch (error) {
      onForwarded?.('failed')
      this.#forgetOwner(peer.instance)
      if (tlsFaultIn(error) !== undefined) this.#options.onFault(error)
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.#server.close()
    await this.#peers[Symbol.asyncDispose]()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Requests to an instance that was stopped, or whose machine is off, would otherwise wait until their clients leave. */
  async #forgetEnded(): Promise<void> {
    const { known: knownInstances } = this.#peers
    if (knownInstances.length === 0) return
    // Nobody knows without the database. The next look is soon.
    const endedInstances = await this.#options.instances.ended(knownInstances).catch(() => [])
    for (const instance of endedInstances) {
      this.#peers.forget(instance)
      this.#forgetOwner(instance)
    }
  }

  async #isHere(conversationId: string): Promise<boolean> {
    return (await this.#options.isHere?.(conversationId)) ?? false
  }

  #noteOwner(conversationId: string, peer: Peer | undefined): void {
    this.#owners.delete(conversationId)
    if (peer) this.#owners.set(conversationId, { peer, at: performance.now() })
    const [oldest] = this.#owners.keys()
    if (oldest !== undefined && this.#owners.size > MAX_OWNERS) this.#owners.delete(oldest)
  }

  #forgetOwner(instance: number): void {
    for (const [id, { peer }] of this.#owners) if (peer.instance === instance) this.#owners.delete(id)
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    const name = nameOf(socket)
    this.#unproven.set(name, socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#unproven.delete(name)
    })
    const [oldest] = this.#unproven.values()
    // An instance proves it at once. Otherwise others could take all file descriptors.
    if (oldest && this.#unproven.size > MAX_UNPROVEN) oldest.destroy(tooMany())
  }

  async #accept(socket: Socket, http: HttpServer): Promise<void> {
    const name = nameOf(socket)
    try {
      requireTrusted(socket)
      const channel = await admit(socket, this.#credentials.key, this.#options.instances.own)
      this.#unproven.delete(name)
      // The server reports the faults of its connections itself; one may come before.
      channel.on('error', () => {})
      this.#connections.add(channel)
      http.emit('connection', channel)
    } catch (error) {
      socket.destroy()
      this.#refuse(error)
    }
  }

  #refuse(error: unknown): void {
    const { onRefused, reportMs = REPORT_MS } = this.#options
    if (performance.now() - this.#reportedAt < reportMs) return
    this.#reportedAt = performance.now()
    onRefused(error)
  }
}

const tooMany = () =>
  new Error('Too many connections to the address for instances have not proven that they are of one.')

/** Enough that two values are never taken for one by chance. */
const HASH_CHARS = 22

type SettingsHashes = Readonly<Record<string, string>>

function hashSettings(settings: Readonly<Record<string, string>>, key: Buffer): SettingsHashes {
  const hashOf = (name: string, value: string) =>
    createHmac('sha256', key).update(`setting ${name} ${value}`).digest('base64url').slice(0, HASH_CHARS)
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, hashOf(name, value)]))
}

/** Returns the names of the settings that differ, sorted. */
const differingSettings = (one: SettingsHashes, other: SettingsHashes): string[] =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name]).sort()
