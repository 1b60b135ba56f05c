/**
 * The subagents that work in the background, by the events of a session. The end of each starts a run of the main agent, for
 * which a query waits.
 */
import type { Event } from '../../contract/events/event.ts'
import type { AskingEvent } from './stopped-session.ts'

export class BackgroundWork {
  /** By the calls that they work for. */
  readonly #working = new Set<string>()
  /** Calls of subagents that wait for a decision. */
  readonly #asking = new Set<string>()

  /** `waiting`: what the session waits for at the beginning, while the main agent is at rest. */
  constructor(waiting: readonly AskingEvent[]) {
    for (const event of waiting) {
      if (event.type !== 'PermissionRequest' || event.parent_tool_use_id === undefined) continue
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
          for (const { tool_use_id } of event.tool_uses) this.#asking.add(tool_use_id)
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

  /** False if there are none, or if they wait for decisions that nobody here makes. */
  continues(mayDecide: boolean): boolean {
    return this.#working.size > 0 && (mayDecide || this.#asking.size === 0)
  }
}
