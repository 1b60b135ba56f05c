/** What a turn waits for, from the log: until its answer, its end, or the results of its calls. Pure. */
import type { EventOf } from '../../contract/events/event.ts'

/** `calls`: those that still wait. */
export type WaitingCalls = { readonly request: EventOf<'RequestOpened'>; readonly calls: ReadonlySet<string> }

export class TurnRequests {
  readonly #byId = new Map<string, { readonly request: EventOf<'RequestOpened'>; readonly calls: Set<string> }>()

  add(request: EventOf<'RequestOpened'>): void {
    this.#byId.set(request.request_id, { request, calls: new Set(request.tool_use_ids) })
  }

  /** A decision may be about some of the calls of a request. */
  end(event: EventOf<'RequestAnswered' | 'RequestClosed'>): void {
    const waiting = this.#byId.get(event.request_id)
    if (!waiting) return
    for (const id of event.tool_use_ids) waiting.calls.delete(id)
    if (event.type === 'RequestClosed' || event.kind !== 'permission' || waiting.calls.size === 0)
      this.#byId.delete(event.request_id)
  }

  endCall(toolUseId: string): void {
    for (const [id, { calls }] of this.#byId) if (calls.delete(toolUseId) && calls.size === 0) this.#byId.delete(id)
  }

  list(): WaitingCalls[] {
    return [...this.#byId.values()]
  }
}
