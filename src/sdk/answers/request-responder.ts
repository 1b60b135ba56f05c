/**
 * Lets the program answer what the session waits for, while its query is open. The parts of the folder answer one kind
 * each; this decides when their work begins and ends.
 */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import type { ResponderDeps } from './responder.ts'
import { OpenWork } from './responder.ts'

export type OpenedRequest = EventOf<'RequestOpened'>

/** One piece of work for a request: all of it, or one of its calls. */
export type Work = { readonly toolUseId: string; readonly run: (signal: AbortSignal) => Promise<void> }

/** Answers requests of some kinds. The answer is sent in the background. */
export type Answerer = {
  /** Returns no work for a request that it does not answer. Must not throw. */
  readonly workOn: (event: OpenedRequest) => readonly Work[]
  /** False for a status that it does not answer, or no more. */
  readonly mayAnswer: (status: Status) => boolean
  /** The request waits no more. */
  readonly forget?: (requestId: string) => void
}

export class RequestResponder {
  readonly #answerers: readonly Answerer[]
  readonly #work: OpenWork
  /** The ids of work that has begun, by the call that it is for. */
  readonly #ofCall = new Map<string, Set<string>>()

  constructor(answerers: readonly Answerer[], fail: ResponderDeps['fail']) {
    this.#answerers = answerers
    this.#work = new OpenWork(fail)
  }

  /** Gets each event in order. */
  take(event: Event): void {
    switch (event.type) {
      case 'RequestOpened':
        return this.#begin(event)
      case 'RequestAnswered':
      case 'RequestClosed':
        for (const toolUseId of event.tool_use_ids) this.#end(toolUseId, idOf(event.request_id, toolUseId))
        for (const answerer of this.#answerers) answerer.forget?.(event.request_id)
        return
      case 'ToolResult':
        for (const id of this.#ofCall.get(event.tool_use_id) ?? []) this.#end(event.tool_use_id, id)
        return
      default:
    }
  }

  mayAnswer(status: Status): boolean {
    return this.#answerers.some((answerer) => answerer.mayAnswer(status))
  }

  close(): void {
    this.#work.endAll()
  }

  #begin(event: OpenedRequest): void {
    for (const { toolUseId, run } of this.#answerers.flatMap((answerer) => answerer.workOn(event))) {
      const id = idOf(event.request_id, toolUseId)
      this.#ofCall.set(toolUseId, (this.#ofCall.get(toolUseId) ?? new Set()).add(id))
      this.#work.start(id, run)
    }
  }

  #end(toolUseId: string, id: string): void {
    const ids = this.#ofCall.get(toolUseId)
    ids?.delete(id)
    if (ids?.size === 0) this.#ofCall.delete(toolUseId)
    this.#work.end(id)
  }
}

const idOf = (requestId: string, toolUseId: string) => `${requestId} ${toolUseId}`
