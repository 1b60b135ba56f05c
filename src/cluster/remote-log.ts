/**
 * The log of a conversation that another instance owns, for readers of this one. Pages come from the storage, everything live
 * from the owner. When the owner ends, or the connection to it, the readers stay: the log continues at the next owner, after
 * the last event that they have.
 */
import type { RequestRecord, RequestSource } from '../events/request-record.ts'
import { ownRecord } from '../events/request-record.ts'
import { closedProblem } from '../events/closed-problem.ts'
import type { LogEnd, LogSubscriber } from '../events/event-log.ts'
import type { LogPage, LogViews, ReadOptions, StoredEvent } from '../events/event-store.ts'
import type { FeedBatch, FeedEnd } from '../events/feed-buffer.ts'
import { LiveMessages } from '../events/live-messages.ts'
import type { PublishedRecord } from '../events/sse-frame.ts'
import type { TransientRecord } from '../events/transient-record.ts'
import { createTransientRecord } from '../events/transient-record.ts'
import { Problem } from '../contract/problem.ts'
import { sleepUnlessAborted } from '../lib/bounded-wait.ts'

/** What one instance sends while it owns the conversation. */
export type LiveSource = {
  readonly instance: number
  readonly batches: AsyncIterable<Pick<FeedBatch, 'records' | 'end'>>
}

export type RemoteLogOptions = {
  readonly conversationId: string
  readonly views: LogViews
  /**
   * Connects to the present owner: its events after this seq, or from now on. Throws a `Problem` that the client may receive,
   * or any other error.
   */
  readonly connect: (afterSeq: number | undefined) => Promise<LiveSource>
  /** Aborted when there is no reader any more. */
  readonly signal: AbortSignal
  /** Aborted when this instance stops: the readers get `closing`. */
  readonly stopping: AbortSignal
  /** The first connection is attempted again like the later ones: for a client that has waited for the owner already. */
  readonly isPatient?: boolean
  /** Called with the reason when a connection was lost, or could not be made again. */
  readonly onLost: (error: unknown) => void
}

/** The time for which it looks for the next owner, in milliseconds. Another instance takes over in about 12 s. */
const SEARCH_MS = 60_000
/** The pauses between two attempts, in milliseconds. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 1000]
/** Requests whose repetition by the owner is recognised. */
const MAX_REQUESTS = 1000

export class RemoteLog {
  readonly conversationId: string
  /** The requests to the client that was named when the log was opened. */
  readonly requests: RequestSource = {
    due: () => [...this.#due.values()],
    subscribe: (add) => {
      this.#listeners.add(add)
      return () => this.#listeners.delete(add)
    },
  }
  readonly #options: RemoteLogOptions
  readonly #subscribers = new Set<LogSubscriber>()
  readonly #listeners = new Set<(record: RequestRecord) => void>()
  readonly #messages = new LiveMessages()
  /** The latest requests that have not ended, by their id. */
  readonly #due = new Map<string, RequestRecord>()
  #head = 0
  #ended: LogEnd | undefined

  private constructor(options: RemoteLogOptions) {
    this.#options = options
    this.conversationId = options.conversationId
  }

  /** Resolves when everything that happens from now on is received. Throws the errors of `connect`. */
  static async open(options: RemoteLogOptions): Promise<RemoteLog> {
    const log = new RemoteLog(options)
    const source = await (options.isPatient ? log.#search(undefined) : options.connect(undefined))
    // The view is read after the connection: an event that is stored between the two comes from both, and counts once.
    await using view = await options.views.view(options.conversationId)
    log.#head = view.head
    void log.#follow(source)
    return log
  }

  get head(): number {
    return this.#head
  }

  get ended(): LogEnd | undefined {
    return this.#ended
  }

  async read(options: ReadOptions): Promise<LogPage> {
    await using view = await this.#options.views.view(this.conversationId)
    return await view.read(options)
  }

  subscribe(subscriber: LogSubscriber): () => void {
    if (this.#ended) subscriber.onClose?.(this.#ended)
    else this.#subscribers.add(subscriber)
    return () => this.#subscribers.delete(subscriber)
  }

  messagesSoFar(): readonly TransientRecord[] {
    return this.#messages.soFar(this.conversationId, Date.now())
  }

  /** Follows the log until it ends. Never rejects. */
  async #follow(first: LiveSource): Promise<void> {
    let end: FeedEnd | undefined
    try {
      for (let source = first; ;) {
        end = await this.#receive(source)
        if (end === 'deleted') return
        const next = await this.#search(this.#head)
        if (next.instance !== source.instance) this.#endUnfinished()
        source = next
      }
    } catch (error) {
      if (isGone(error)) end = 'deleted'
      else if (!this.#isOver) this.#options.onLost(error)
    } finally {
      this.#end(end === 'deleted' ? end : 'closing')
    }
  }

  /** Resolves when the source has ended, with its reason if it has said one. */
  async #receive({ batches }: LiveSource): Promise<FeedEnd | undefined> {
    try {
      for await (const { records, end } of batches) {
        for (const record of records) this.#take(record)
        if (end !== undefined) return end
      }
    } catch (error) {
      if (!this.#isOver) this.#options.onLost(error)
    }
    return undefined
  }

  /** Throws the last error if no owner has answered in time, or the conversation does not exist any more. */
  async #search(afterSeq: number | undefined): Promise<LiveSource> {
    const { connect, signal } = this.#options
    const giveUpAt = performance.now() + SEARCH_MS
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      if (this.#isOver) throw closedProblem('closing')
      try {
        return await connect(afterSeq)
      } catch (error) {
        if (isGone(error) || performance.now() > giveUpAt) throw error
      }
      await sleepUnlessAborted(pause, signal)
    }
  }

  get #isOver(): boolean {
    return this.#options.signal.aborted || this.#options.stopping.aborted
  }

  #take(record: PublishedRecord): void {
    if (record.seq !== undefined) this.#show(record)
    else if (isRequest(record)) this.#addRequest(record)
    else if (record.type !== 'conversation_deleted' && record.type !== 'ConversationSummary') this.#publish(record)
  }

  #show(event: StoredEvent): void {
    if (event.seq <= this.#head) return
    // The connection is made again after the head, and brings what is missing.
    if (event.seq > this.#head + 1) throw new Error(`Event ${event.seq} follows event ${this.#head}.`)
    this.#head = event.seq
    if (event.type === 'AssistantMessage' && event.event.type === 'AssistantMessage')
      this.#messages.forget(event.event.message_id)
    for (const subscriber of this.#subscribers) subscriber.onEvents?.([event])
  }

  #publish(record: TransientRecord): void {
    if (record.event.type === 'AssistantDelta') this.#messages.add(record.event)
    if (record.event.type === 'AssistantAborted') this.#messages.forget(record.event.message_id)
    for (const subscriber of this.#subscribers) subscriber.onTransient?.(record)
  }

  #addRequest(record: RequestRecord): void {
    const { request_id: id } = record.event
    if (record.type === 'HookRequestEnded') this.#due.delete(id)
    else if (this.#due.has(id)) return
    else this.#due.set(id, record)
    const [oldest] = this.#due.keys()
    if (oldest !== undefined && this.#due.size > MAX_REQUESTS) this.#due.delete(oldest)
    for (const listener of this.#listeners) listener(record)
  }

  /** What the former owner had begun, the next one does not continue: it is attempted again from the start. */
  #endUnfinished(): void {
    const messages = new Set(this.messagesSoFar().map(({ event }) => 'message_id' in event && event.message_id))
    for (const message_id of messages)
      if (message_id !== false)
        this.#publish(createTransientRecord({ type: 'AssistantAborted', message_id }, this.conversationId, Date.now()))
    const timestamp = new Date().toISOString()
    for (const { event } of this.requests.due()) {
      const { conversation_id, request_id, client } = event
      const about = { conversation_id, timestamp, request_id, client, reason: 'interrupted' as const }
      this.#addRequest(ownRecord({ type: 'HookRequestEnded', ...about }))
    }
  }

  #end(end: LogEnd): void {
    if (this.#ended) return
    this.#ended = end
    for (const subscriber of this.#subscribers) subscriber.onClose?.(end)
    this.#subscribers.clear()
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof Problem && (error.code === 'conversation_deleted' || error.code === 'conversation_not_found')

const isRequest = (record: PublishedRecord): record is RequestRecord =>
  record.type === 'HookRequest' || record.type === 'HookRequestEnded'
