/**
 * The subagents that work in the background, by the events of a session. The end of each starts a run of the main agent, for
 * which a query waits.
 */
import type { Event } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import type { AskingEvent } from './stopped-session.ts'

export class BackgroundWork {
  /** By the calls that they work for. */
  readonly #working = new Set<string>()
  /** Calls of subagents that wait for a decision or an answer, with the status of a main agent that waits so. */
  readonly #asking = new Map<string, Status>()

  /** `waiting`: what the session waits for at the beginning, while the main agent is at rest. */
  constructor(waiting: readonly AskingEvent[]) {
    for (const event of waiting) {
      if (!('parent_tool_use_id' in event) || event.parent_tool_use_id === undefined) continue
      this.#working.add(event.parent_tool_use_id)
      this.take(event)
    }
  }

  take(event: Event): void {
    switch (event.type) {
      case 'SubagentStart':
        if (event.background) this.#working.add(event.parent_tool_use_id)
        break
      case 'PermissionRequest':
        if (event.parent_tool_use_id !== undefined)
          for (const { tool_use_id } of event.tool_uses) this.#asking.set(tool_use_id, 'waiting_for_confirmation')
        break
      case 'UserQuestion':
        if (event.parent_tool_use_id !== undefined) this.#asking.set(event.tool_use_id, 'waiting_for_input')
        break
      case 'PermissionDecision':
      case 'ToolResult':
        this.#asking.delete(event.tool_use_id)
        break
      case 'Result':
        if (event.parent_tool_use_id !== undefined) this.#working.delete(event.parent_tool_use_id)
        break
      default:
    }
  }

  /** False if there are none, or if one waits for what nobody here answers. */
  continues(mayAnswer: (status: Status) => boolean): boolean {
    return this.#working.size > 0 && [...this.#asking.values()].every(mayAnswer)
  }
}
