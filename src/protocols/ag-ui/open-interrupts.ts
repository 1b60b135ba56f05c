/** What a run waits for, from the log: until its answer, its end, or the results of its calls. Pure. */
import type { EventOf } from '../../contract/events/event.ts'
import type { AgUiInterrupt } from './interrupts.ts'
import { interruptsOf, isInterrupt } from './interrupts.ts'

type Waiting = { readonly request: EventOf<'RequestOpened'>; readonly calls: Set<string> }

export class OpenInterrupts {
  readonly #byId = new Map<string, Waiting>()

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

  /** `subagentOf`: the invocation that a `Task` call has begun. */
  interrupts(subagentOf: (parent: string) => string | undefined): AgUiInterrupt[] {
    return [...this.#byId.values()].flatMap(({ request, calls }) => {
      const { parent_tool_use_id: parent } = request
      const subagentRunId = parent === undefined ? undefined : subagentOf(parent)
      return isInterrupt(request) ? interruptsOf(request, calls, subagentRunId) : []
    })
  }

  /** The calls of frontend tools. */
  pendingToolCallIds(): string[] {
    const ofClient = [...this.#byId.values()].filter(({ request }) => request.kind === 'client_tool')
    return ofClient.flatMap(({ calls }) => [...calls])
  }
}
