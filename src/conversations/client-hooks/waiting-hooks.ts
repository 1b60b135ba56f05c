/**
 * The requests to clients that wait for an answer, from the call of a hook to its outcome: the answer of a client, or
 * the end of the signal with which the runner of hooks limits the call. In memory only: a call whose hooks have not
 * answered does not survive the server, whatever hooks they are.
 */
import { randomUUID } from 'node:crypto'
import type { HookFrame, HookRequest, HookRequestEnded } from '../../contract/hooks/client-hooks.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import type { RequestRecord, RequestSource } from '../../events/request-record.ts'
import { ownRecord } from '../../events/request-record.ts'
import type { HookAnswer } from '../../hooks/hook-answer.ts'

/** A hook that a client answers. */
export type RegisteredHook = {
  readonly client: string
  readonly id: string
  readonly point: HookPoint
  /** The time until the signal is aborted. */
  readonly timeoutMs: number
}

export type WaitingHook = {
  readonly request: HookRequest
  readonly resolve: (answer: HookAnswer) => void
  readonly reject: (why: unknown) => void
}

type Listener = (record: RequestRecord) => void

/** Requests that are remembered after their end, so that a late answer gets the reason why it does not count. */
const MAX_ENDED = 1000

export class WaitingHooks {
  readonly #conversationId: string
  readonly #waiting = new Map<string, WaitingHook>()
  /** The value is the hash of the answer, if there was one; the oldest comes first. */
  readonly #ended = new Map<string, string | undefined>()
  /** Calls in the background that have not ended, by client. */
  readonly #expected = new Map<string, number>()
  /** The open streams of each client. */
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor(conversationId: string) {
    this.#conversationId = conversationId
  }

  get(requestId: string): WaitingHook | undefined {
    return this.#waiting.get(requestId)
  }

  /** Returns the requests in the order of the calls. */
  requests(): HookRequest[] {
    return [...this.#waiting.values()].map(({ request }) => request)
  }

  isConnected(client: string): boolean {
    return this.#listeners.has(client)
  }

  /** Counts a call in the background until the result is called. */
  expect(client: string): () => void {
    this.#expected.set(client, this.expectedBy(client) + 1)
    return () => {
      const remainingCount = this.expectedBy(client) - 1
      if (remainingCount > 0) this.#expected.set(client, remainingCount)
      else this.#expected.delete(client)
    }
  }

  expectedBy(client: string): number {
    return this.#expected.get(client) ?? 0
  }

  /** Returns what a stream of the client sends. */
  requestsTo(client: string): RequestSource {
    return {
      due: () =>
        this.requests()
          .filter((request) => request.client === client)
          .map(ownRecord),
      subscribe: (add) => this.#subscribe(client, add),
    }
  }

  /** Asks the client. Rejects with the signal's reason, with what the client reports, or if its hooks are removed. */
  async request(
    hook: RegisteredHook,
    payload: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<HookAnswer> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<HookAnswer>()
    const request = this.#requestOf(hook, payload)
    const { request_id: id } = request
    const giveUp = () => {
      this.#end(id, isTimeout(signal.reason) ? 'timeout' : 'interrupted')
      reject(signal.reason)
    }
    this.#waiting.set(id, { request, resolve, reject })
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      this.#tell(request)
      return await promise
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Tells the client of a point at which nobody waits for answers. */
  notify(hook: RegisteredHook, payload: Readonly<Record<string, unknown>>): void {
    this.#tell(this.#requestOf(hook, payload))
  }

  /** Ends the request with what the client answered. */
  answered(requestId: string, hash: string): void {
    this.#end(requestId, 'answered', hash)
  }

  /** Returns the hash of the answer of a request that does not wait any more; undefined for one that had none. */
  ended(requestId: string): { readonly hash: string | undefined } | undefined {
    return this.#ended.has(requestId) ? { hash: this.#ended.get(requestId) } : undefined
  }

  /** The hooks of the client were removed: those that wait have failed. */
  drop(client: string): void {
    for (const { request, reject } of this.#waiting.values()) {
      if (request.client !== client) continue
      this.#end(request.request_id, 'removed')
      reject(new Error(`the hooks of ${client} were removed`))
    }
  }

  #subscribe(client: string, add: Listener): () => void {
    // Two streams can pass the same function.
    const own: Listener = (record) => add(record)
    const listeners = this.#listeners.get(client) ?? new Set()
    this.#listeners.set(client, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && this.#listeners.get(client) === listeners) this.#listeners.delete(client)
    }
  }

  #requestOf(
    { client, id, point, timeoutMs }: RegisteredHook,
    payload: Readonly<Record<string, unknown>>,
  ): HookRequest {
    const now = Date.now()
    return {
      type: 'HookRequest',
      conversation_id: this.#conversationId,
      timestamp: new Date(now).toISOString(),
      request_id: randomUUID(),
      client,
      hook_id: id,
      hook_point: point,
      payload,
      deadline: new Date(now + timeoutMs).toISOString(),
    }
  }

  #end(requestId: string, reason: HookRequestEnded['reason'], hash?: string): void {
    const waiting = this.#waiting.get(requestId)
    if (!waiting) return
    this.#waiting.delete(requestId)
    this.#ended.set(requestId, hash)
    const [oldest] = this.#ended.keys()
    if (oldest !== undefined && this.#ended.size > MAX_ENDED) this.#ended.delete(oldest)
    const { client, conversation_id } = waiting.request
    const timestamp = new Date().toISOString()
    this.#tell({ type: 'HookRequestEnded', conversation_id, timestamp, request_id: requestId, client, reason })
  }

  #tell(frame: HookFrame): void {
    const listeners = this.#listeners.get(frame.client)
    if (!listeners) return
    // One record for all streams: its frame is made once.
    const record = ownRecord(frame)
    for (const listener of listeners) listener(record)
  }
}

const isTimeout = (reason: unknown): boolean => reason instanceof DOMException && reason.name === 'TimeoutError'
