/**
 * A conversation that another instance owns, for one request of a client. It has the parts of a `Conversation` that streams and
 * runs use. The owner is asked with the rights of the client, and looked up each time: it may be this instance by now.
 */
import { text } from 'node:stream/consumers'
import type { FastifyRequest } from 'fastify'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Rights } from '../../cluster/rights.ts'
import type { PeerResponse, SentRequest } from '../../cluster/peer-client.ts'
import { readOwnerStream } from '../../cluster/owner-stream.ts'
import type { LiveSource } from '../../cluster/remote-log.ts'
import { RemoteLog } from '../../cluster/remote-log.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { ErrorBody, Problem } from '../../contract/problem.ts'
import type { RunOutcome, RunRequest } from '../../contract/run.ts'
import { RunStarted } from '../../contract/run.ts'
import type { AckFrame, CommandFrame } from '../../contract/socket.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { waitForRun } from '../../conversations/runs/wait-for-run.ts'
import { follow } from '../../events/event-feed.ts'
import type { LogViews } from '../../events/event-store.ts'
import { findInLog } from '../../events/read-pages.ts'
import type { RequestSource } from '../../events/request-record.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Instances, Peer } from '../../storage/instances.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { RemoteRequest } from '../request/frame-request.ts'
import { requestOf } from '../request/frame-request.ts'

export type RemoteDeps = {
  readonly cluster: Pick<Cluster, 'ownerElsewhere' | 'send'>
  readonly instances: Pick<Instances, 'own' | 'isOrphan'>
  readonly views: LogViews
  readonly manager: Pick<ConversationManager, 'open' | 'ownerOf'>
  readonly logger: Logger
  readonly stopping: AbortSignal
}

export type RemoteReader = {
  readonly deltas?: boolean
  /** The client whose hook requests are received, too. */
  readonly client?: string | undefined
  /** Aborted when the client has left or its key ends. */
  readonly signal: AbortSignal
  readonly isPatient?: boolean
}

type OpenRemote = {
  readonly log: RemoteLog
  readonly clientHooks: { readonly requestsTo: () => RequestSource }
}

const UPDATES: ReadonlySet<string> = new Set(['StatusUpdate'])

export class RemoteConversation {
  readonly id: string
  readonly #deps: RemoteDeps
  readonly #request: FastifyRequest
  readonly #rights: Rights

  constructor(deps: RemoteDeps, request: FastifyRequest, id: string, rights: Rights) {
    this.#deps = deps
    this.#request = request
    this.id = id
    this.#rights = rights
  }

  /** Connects to the owner, until the signal is aborted. Throws what the owner answers, and the `Problem` `owner_lost`. */
  async open({ deltas = false, client, signal, isPatient = false }: RemoteReader): Promise<OpenRemote> {
    const { views, stopping, logger } = this.#deps
    const wish = { deltas, client, signal: AbortSignal.any([signal, stopping]) }
    const log = await RemoteLog.open({
      conversationId: this.id,
      views,
      connect: (afterSeq) => this.#connect(afterSeq, wish),
      signal,
      stopping,
      isPatient,
      onLost: (err) =>
        logger.info({ err, conversation_id: this.id }, 'the connection to the owner of a conversation was lost'),
    })
    return { log, clientHooks: { requestsTo: () => log.requests } }
  }

  /** Throws what the owner answers to a client that may not see the conversation. */
  async glance(): Promise<{ readonly log: { readonly head: number }; readonly clientHooks?: never }> {
    if ((await this.#call({ method: 'GET', path: '' })) === undefined) await this.#here()
    await using log = await this.#deps.views.view(this.id)
    return { log: { head: log.head } }
  }

  /** Opens the conversation, and also returns the state that is stored. */
  async openWithState(reader: RemoteReader): Promise<OpenRemote & { readonly state: { readonly status: Status } }> {
    const openedLog = await this.open(reader)
    return { ...openedLog, state: { status: (await lastUpdate(openedLog.log))?.status ?? 'idle' } }
  }

  /** Returns the result of a frame that the owner has executed; undefined if this instance is the owner now. */
  async execute(frame: CommandFrame): Promise<AckFrame['result'] | undefined> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the response of the route with the same name
    return (await this.#call(requestOf(frame))) as AckFrame['result'] | undefined
  }

  async run(options: Partial<RunRequest>): Promise<string> {
    const response = await this.#call({ method: 'POST', path: '/run', body: options })
    return response === undefined ? await (await this.#here()).run(options) : RunStarted.parse(response).run_id
  }

  /**
   * Does what `Conversation.waitForRun` does. Whichever instance owns the conversation by then has stored the end of
   * the run.
   */
  async waitForRun(runId: string, timeout: number, signal: AbortSignal): Promise<RunOutcome> {
    const timeoutMs = Math.ceil(timeout * 1000)
    const { log } = await this.open({ signal, isPatient: true })
    let last: EventOf<'StatusUpdate'> | undefined
    const note = (event: Event) => {
      if (event.type === 'StatusUpdate' && event.seq > (last?.seq ?? 0)) last = event
    }
    // This precedes the reading of what is stored: an update between the two comes from both.
    const unsubscribe = log.subscribe({ onEvents: (events) => events.forEach(({ event }) => note(event)) })
    try {
      const lastStored = await lastUpdate(log)
      if (lastStored) note(lastStored)
      const isOver = () => last?.run_id !== runId || last.status !== 'running'
      const awaitedEnd = await waitForRun(log, { runId, isOver, watch: () => () => {}, timeoutMs, signal })
      return { run_id: runId, status: last?.status ?? 'idle', ...awaitedEnd }
    } finally {
      unsubscribe()
    }
  }

  async #connect(afterSeq: number | undefined, { deltas = false, client, signal }: RemoteReader): Promise<LiveSource> {
    const owner = await this.#owner()
    if (!owner) {
      const { instances } = this.#deps
      // Its work must be recovered by the instance that takes it over, and not only be opened for a reader.
      if (await instances.isOrphan(this.id)) throw notTakenOver()
      const { log, clientHooks } = await this.#here()
      const requests = client === undefined ? undefined : clientHooks.requestsTo(client)
      const batches = follow(log, { deltas, signal, ...withoutUndefined({ afterSeq, requests }) })
      return { instance: instances.own, batches }
    }
    const query = new URLSearchParams({ deltas: String(deltas) })
    if (afterSeq !== undefined) query.set('after_seq', String(afterSeq))
    if (client !== undefined) query.set('hook_client', client)
    // Errors would arrive as streams, too, with `text/event-stream` alone.
    const headers = { accept: 'text/event-stream, application/json' }
    const path = `/events/stream?${query.toString()}`
    const response = await this.#send(owner, { method: 'GET', path, headers, body: undefined, signal })
    if (response.status !== 200) throw problemIn(await textOf(response))
    return { instance: owner.instance, batches: readOwnerStream(response.body) }
  }

  /** Resolves to undefined if this instance is the owner now. The request is sent at most once. Throws a `Problem`. */
  async #call({ method, path, body, idempotencyKey }: RemoteRequest): Promise<unknown> {
    const owner = await this.#owner()
    if (!owner) return undefined
    const headers = {
      ...(body && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    }
    // The owner finishes what the client has requested, also if the client leaves.
    const { signal } = new AbortController()
    const sentRequest = { method, path, headers, body: body && JSON.stringify(body), signal }
    const response = await this.#send(owner, sentRequest)
    const answer = await textOf(response)
    if (response.status >= 300) throw problemIn(answer)
    return JSON.parse(answer)
  }

  async #send(owner: Peer, { path, headers, ...sentRequest }: SentRequest) {
    const own = { path: `/conversations/${this.id}${path}`, headers: { ...headers, 'x-request-id': this.#request.id } }
    return await this.#deps.cluster.send(owner, { ...sentRequest, ...own }, this.#rights)
  }

  async #owner(): Promise<Peer | undefined> {
    return await this.#deps.cluster.ownerElsewhere(this.#request.raw.socket, this.id)
  }

  /** Opens it here. Refuses a key that is limited to other conversations, which is known here only now. */
  async #here(): Promise<Conversation> {
    const { manager } = this.#deps
    const conversation = await manager.open(this.id)
    const summary = manager.ownerOf(this.id)
    if (summary && this.#rights.access.sees(summary)) return conversation
    throw new Problem('conversation_not_found', `There is no conversation ${this.id}.`)
  }
}

/** Returns the last change of the status that is stored. */
const lastUpdate = async (log: RemoteLog): Promise<EventOf<'StatusUpdate'> | undefined> =>
  await findInLog(log, { order: 'desc', types: UPDATES, limit: 1 }, ({ event }) =>
    event.type === 'StatusUpdate' ? event : undefined,
  )

const notTakenOver = () =>
  new Problem(
    'owner_lost',
    'The instance that had this conversation has ended, and none has taken it over yet. Try again.',
  )

async function textOf({ body }: PeerResponse): Promise<string> {
  try {
    return await text(body)
  } catch (cause) {
    const message =
      'The instance that has this conversation did not finish its response. The request may have been executed. Read the conversation, then try again.'
    throw new Problem('owner_lost', message, { cause })
  }
}

function problemIn(answer: string): Problem {
  const { error, message, details } = ErrorBody.parse(JSON.parse(answer))
  return new Problem(error, message, withoutUndefined({ details }))
}
