/**
 * The requests of one kind that a running call holds open, from their `RequestOpened` to their end: an answer, the
 * deadline, or an interruption, whichever is first. A restart of the server ends them, as it ends all calls.
 */
import type { EventDraft, EventOf } from '../../contract/events/event.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { timerMs } from '../../lib/bounded-wait.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { inRun, inSubagent } from '../../state/drafts.ts'
import type { AnswerHeldIntent } from '../../state/held-intents.ts'
import { closing } from '../../state/request-drafts.ts'
import type { State, Subagent } from '../../state/state-shape.ts'
import { callerOf } from '../../state/subagents.ts'

export type HeldKind = 'client_tool' | 'elicitation'

/** An answer as it is stored. */
export type HeldAnswer<K extends HeldKind> = Extract<EventOf<'RequestAnswered'>, { kind: K }>['answer']

/** How a request ended. */
export type HeldEnd<K extends HeldKind> =
  | { readonly by: 'answer'; readonly answer: HeldAnswer<K> }
  | { readonly by: 'timeout' | 'interrupted' }

/** What answers to these requests need from the conversation's actor. */
export type HeldActor = {
  /** Queues the work and runs it in turn. */
  enqueue<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: AnswerHeldIntent): Promise<unknown>
}

export type HeldRequestsDeps = {
  readonly log: Pick<EventLog, 'append' | 'subscribe'>
  readonly state: { readonly current: Pick<State, 'run' | 'subagents'> }
}

type Asked<K extends HeldKind> = {
  readonly toolUseId: string
  readonly payload: OpenRequestOf<K>['payload']
  /** Default: no deadline. */
  readonly timeoutMs?: number | undefined
  readonly signal: AbortSignal
}

export class HeldRequests<K extends HeldKind> {
  readonly #kind: K
  readonly #deps: HeldRequestsDeps
  readonly #held = new Map<string, HeldRequest<K>>()

  constructor(kind: K, deps: HeldRequestsDeps) {
    this.#kind = kind
    this.#deps = deps
  }

  /** Returns the request if it can still be answered. */
  get(requestId: string): HeldRequest<K> | undefined {
    const request = this.#held.get(requestId)
    return request?.isOver === false ? request : undefined
  }

  /** In the order of the calls. */
  views(): OpenRequestOf<K>[] {
    return [...this.#held.values()].filter(({ isOver }) => !isOver).map(({ view }) => view)
  }

  /** Opens a request and waits for its end. Rejects if it could not be stored. */
  async hold({ toolUseId, payload, timeoutMs, signal }: Asked<K>): Promise<HeldEnd<K>> {
    const id = uuid7()
    const request = new HeldRequest<K>(this.#view(id, { toolUseId, payload, timeoutMs }))
    const interrupt = () => request.giveUp('interrupted')
    // Before it is stored: a client may answer at once.
    this.#held.set(id, request)
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => request.giveUp('timeout'), timerMs(timeoutMs))
    signal.addEventListener('abort', interrupt, { once: true })
    const unsubscribe = this.#deps.log.subscribe({ onEvents: () => {}, onClose: interrupt })
    try {
      if (signal.aborted) return { by: 'interrupted' }
      await request.announce(this.#deps.log.append(this.#ofCall(toolUseId, opening(request.view))))
      const end = await request.end
      if (end.by !== 'answer') await this.#close(toolUseId, request.view, end.by)
      return end
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', interrupt)
      unsubscribe()
      this.#held.delete(id)
    }
  }

  #view(request_id: string, { toolUseId, payload, timeoutMs }: Omit<Asked<K>, 'signal'>): OpenRequestOf<K> {
    const now = Date.now()
    const view = {
      kind: this.#kind,
      request_id,
      opened_at: new Date(now).toISOString(),
      ...(timeoutMs !== undefined && { deadline: new Date(now + timeoutMs).toISOString() }),
      tool_use_ids: [toolUseId],
      ...agentOf(callerOf(this.#deps.state.current, toolUseId)),
      payload,
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and payload belong together
    return view as unknown as OpenRequestOf<K>
  }

  /** Without this event, the result of the call ends the request: the log may be closed already. */
  async #close(toolUseId: string, view: OpenRequestOf<HeldKind>, by: 'timeout' | 'interrupted'): Promise<void> {
    await this.#deps.log.append(this.#ofCall(toolUseId, closing(view, by))).catch(() => {})
  }

  /** The event of the run, and of the subagent, that made the call. */
  #ofCall(toolUseId: string, draft: EventDraft): EventDraft[] {
    const { current } = this.#deps.state
    const caller = callerOf(current, toolUseId)
    const drafts = [{ ...draft, ...inRun(caller?.agent ?? current) }]
    return caller ? inSubagent(drafts, caller) : drafts
  }
}

/** One request that a call holds open. */
export class HeldRequest<K extends HeldKind> {
  readonly view: OpenRequestOf<K>
  readonly end: Promise<HeldEnd<K>>
  readonly #resolve: (end: HeldEnd<K>) => void
  #announced: Promise<unknown> = Promise.resolve()
  #isAnswering = false
  /** A reason to end without an answer that came while one was being stored. */
  #late: 'timeout' | 'interrupted' | undefined
  #isOver = false

  constructor(view: OpenRequestOf<K>) {
    this.view = view
    const { promise, resolve } = Promise.withResolvers<HeldEnd<K>>()
    this.end = promise
    this.#resolve = resolve
  }

  get isOver(): boolean {
    return this.#isOver || this.#late !== undefined
  }

  /** An answer is not stored before the request. */
  async announce(stored: Promise<unknown>): Promise<void> {
    this.#announced = stored.catch(() => {})
    await stored
  }

  /**
   * Ends the request with this answer when `store` has stored it. An answer that is being stored counts, even if the
   * deadline or an interruption comes meanwhile: its client learns that it was accepted. Rejects as `store` does; the
   * request then still waits. Called for one answer at a time.
   */
  async answer(answer: HeldAnswer<K>, store: () => Promise<unknown>): Promise<void> {
    this.#isAnswering = true
    try {
      await this.#announced
      await store()
      this.#finish({ by: 'answer', answer })
    } finally {
      this.#isAnswering = false
      if (this.#late) this.#finish({ by: this.#late })
    }
  }

  giveUp(by: 'timeout' | 'interrupted'): void {
    if (this.#isAnswering) this.#late ??= by
    else this.#finish({ by })
  }

  #finish(end: HeldEnd<K>): void {
    this.#isOver = true
    this.#resolve(end)
  }
}

function opening(view: OpenRequestOf<HeldKind>): EventDraft {
  const { opened_at: _, parent_tool_use_id: __, agent_name: ___, ...request } = view
  return { type: 'RequestOpened', source: 'environment', ...request }
}

const agentOf = (caller: Subagent | undefined) =>
  caller && { parent_tool_use_id: caller.toolUseId, agent_name: caller.name }
