/**
 * The requests that a running call holds open, from their `RequestOpened` to their end: an answer, or an interruption. A
 * restart of the server ends them, as it ends all calls.
 */
import type { EventDraft } from '../../contract/events/event.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import type { HeldKind } from '../../contract/requests/request-kinds.ts'
import type { EventLog } from '../../events/event-log.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { inRun, inSubagent } from '../../state/drafts.ts'
import type { StoredAnswerOf } from '../../state/held-intents.ts'
import { closing } from '../../state/request-drafts.ts'
import type { State, Subagent } from '../../state/state-shape.ts'
import { callerOf } from '../../state/subagents.ts'
import type { OutsideRequest } from '../../tools/tool.ts'

type HeldView = OpenRequestOf<HeldKind>
type HeldAnswer = StoredAnswerOf<HeldKind>

/** How a request ended. */
type HeldEnd = { readonly by: 'answer'; readonly answer: HeldAnswer } | { readonly by: 'interrupted' }

type RequestOfCall = { readonly kind: HeldKind; readonly toolUseId: string; readonly payload: object }

type SlotRests = {
  begin(toolUseId: string): void
  end(toolUseId: string): Promise<void>
  check(): void
}

export type HeldRequestsDeps = {
  readonly log: Pick<EventLog, 'append' | 'subscribe'>
  readonly state: { readonly current: Pick<State, 'run' | 'subagents'> }
  /** The slots of the agents whose calls wait here. */
  readonly rests: () => SlotRests
}

export class HeldRequests {
  readonly #deps: HeldRequestsDeps
  readonly #held = new Map<string, HeldRequest>()

  constructor(deps: HeldRequestsDeps) {
    this.#deps = deps
  }

  /** Returns the request if it can still be answered. */
  get(kind: HeldKind, requestId: string): HeldRequest | undefined {
    const request = this.#held.get(requestId)
    return request?.view.kind === kind && !request.isOver ? request : undefined
  }

  /** Returns those of a kind in the order of the calls. */
  views(kind: HeldKind): HeldView[] {
    return [...this.#held.values()].flatMap(({ isOver, view }) => (view.kind === kind && !isOver ? [view] : []))
  }

  /**
   * Opens a request and waits for its end, and then for the slot that the agent has given back meanwhile. Rejects if the
   * request could not be stored.
   */
  async hold({ signal, ...askedRequest }: OutsideRequest<HeldKind>): Promise<HeldEnd> {
    const { toolUseId } = askedRequest
    const id = uuid7()
    const request = new HeldRequest(this.#view(id, askedRequest))
    const interrupt = () => request.interrupt()
    // It is held before it is stored: a client may answer at once.
    this.#held.set(id, request)
    signal.addEventListener('abort', interrupt, { once: true })
    const rests = this.#deps.rests()
    const unsubscribe = this.#deps.log.subscribe({ onEvents: () => rests.check(), onClose: interrupt })
    try {
      if (signal.aborted) return { by: 'interrupted' }
      await request.announce(this.#deps.log.append(this.#ofCall(toolUseId, opening(request.view))))
      rests.begin(toolUseId)
      const end = await request.end
      if (end.by !== 'answer') await this.#close(toolUseId, request.view)
      return end
    } finally {
      signal.removeEventListener('abort', interrupt)
      unsubscribe()
      this.#held.delete(id)
      await rests.end(toolUseId)
    }
  }

  #view(request_id: string, { kind, toolUseId, payload }: RequestOfCall): HeldView {
    const request = { request_id, opened_at: new Date().toISOString(), tool_use_ids: [toolUseId] }
    const caller = callerOf(this.#deps.state.current, toolUseId)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and payload belong together
    return { kind, ...request, ...agentOf(caller), payload } as HeldView
  }

  /** Ignores a failed append: the result of the call ends the request, too, and the log may be closed already. */
  async #close(toolUseId: string, view: HeldView): Promise<void> {
    await this.#deps.log.append(this.#ofCall(toolUseId, closing(view, 'interrupted'))).catch(() => {})
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
export class HeldRequest {
  readonly view: HeldView
  readonly end: Promise<HeldEnd>
  readonly #resolve: (end: HeldEnd) => void
  #announced: Promise<unknown> = Promise.resolve()
  #isAnswering = false
  /** True if it was interrupted while an answer was being stored. */
  #isLate = false
  #isOver = false

  constructor(view: HeldView) {
    this.view = view
    const { promise, resolve } = Promise.withResolvers<HeldEnd>()
    this.end = promise
    this.#resolve = resolve
  }

  get isOver(): boolean {
    return this.#isOver || this.#isLate
  }

  /** An answer is not stored before the request. */
  async announce(storing: Promise<unknown>): Promise<void> {
    this.#announced = storing.catch(() => {})
    await storing
  }

  /**
   * Ends the request with this answer when `store` has stored it. An answer that is being stored counts, even if an
   * interruption comes meanwhile: its client learns that it was accepted. Rejects as `store` does; the
   * request then still waits. Called for one answer at a time.
   */
  async answer(answer: HeldAnswer, store: () => Promise<unknown>): Promise<void> {
    this.#isAnswering = true
    try {
      await this.#announced
      await store()
      this.#finish({ by: 'answer', answer })
    } finally {
      this.#isAnswering = false
      if (this.#isLate) this.#finish({ by: 'interrupted' })
    }
  }

  interrupt(): void {
    if (this.#isAnswering) this.#isLate = true
    else this.#finish({ by: 'interrupted' })
  }

  #finish(end: HeldEnd): void {
    this.#isOver = true
    this.#resolve(end)
  }
}

function opening(view: HeldView): EventDraft {
  const { opened_at: _, parent_tool_use_id: __, agent_name: ___, ...request } = view
  return { type: 'RequestOpened', source: 'environment', ...request }
}

const agentOf = (caller: Subagent | undefined) =>
  caller && { parent_tool_use_id: caller.toolUseId, agent_name: caller.name }
