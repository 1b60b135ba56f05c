/**
 * The subagents that work in the background, by the events of a session. The end of each starts a run of the main agent, for
 * which a query waits.
 */
import type { Event } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { hasForm } from '../../contract/requests/request-forms.ts'
import { restOf } from '../../contract/requests/request-kinds.ts'
import type { PendingRequestEvent } from './stopped-session.ts'

/** The status of a main agent that waits for such a request. */
const statusOf = (request: PendingRequestEvent): Status | undefined =>
  restOf(request.kind) ?? (hasForm(request, 'questions') ? 'waiting_for_input' : undefined)

export class BackgroundWork {
  /** The keys are the calls that they work for. */
  readonly #working = new Set<string>()
  /** Calls of subagents that wait for a decision or an answer, with the status of a main agent that waits so. */
  readonly #asking = new Map<string, Status>()

  /** `waiting`: what the session waits for at the beginning, while the main agent is at rest. */
  constructor(waiting: readonly PendingRequestEvent[]) {
    for (const event of waiting) {
      if (event.parent_tool_use_id === undefined) continue
      this.#working.add(event.parent_tool_use_id)
      this.take(event)
    }
  }

  take(event: Event): void {
    switch (event.type) {
      case 'SubagentStart':
        if (event.background) this.#working.add(event.parent_tool_use_id)
        break
      case 'RequestOpened':
        if (event.parent_tool_use_id !== undefined) this.#addRequest(event)
        break
      case 'RequestAnswered':
      case 'RequestClosed':
        // The answer to a question is not the end of its call.
        if (event.kind === 'permission') event.tool_use_ids.forEach((id) => this.#asking.delete(id))
        break
      case 'ToolResult':
        this.#asking.delete(event.tool_use_id)
        break
      case 'Result':
        if (event.parent_tool_use_id !== undefined) this.#working.delete(event.parent_tool_use_id)
        break
      default:
    }
  }

  #addRequest(request: PendingRequestEvent): void {
    const status = statusOf(request)
    if (status) for (const id of request.tool_use_ids) this.#asking.set(id, status)
  }

  /** False if there are none, or if one waits for what nobody here answers. */
  continues(mayAnswer: (status: Status) => boolean): boolean {
    return this.#working.size > 0 && [...this.#asking.values()].every(mayAnswer)
  }
}
