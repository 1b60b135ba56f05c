/** What the agent of a session does, in the words of version 2: in the foreground, and which subagents work in the background. */
import type { StopReason } from '@agentclientprotocol/sdk'
import type { IdleStateUpdate, SessionUpdate } from '@agentclientprotocol/sdk/experimental/v2'
import { describeEvent } from '../../contract/events/describe-event.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { INTERNAL_ERROR } from './protocol-errors.ts'
import { STOP_REASONS } from './turn.ts'

type Activity = 'running' | 'requires_action' | 'idle'

const ENDS = {
  end_turn: { stopReason: 'end_turn' },
  max_tokens: { stopReason: 'max_tokens' },
  max_turn_requests: { stopReason: 'max_turn_requests' },
  refusal: { stopReason: 'refusal' },
  cancelled: { stopReason: 'cancelled' },
} as const satisfies Readonly<Record<StopReason, IdleStateUpdate>>

const ACTIVITIES: Readonly<Partial<Record<Status, Activity>>> = {
  running: 'running',
  waiting_for_confirmation: 'requires_action',
  waiting_for_input: 'requires_action',
  waiting_for_client: 'requires_action',
}

export class StateReports {
  #activity: Activity
  /** Subagents in the background, by the call that they work for. */
  readonly #background = new Map<string, string>()
  #result: EventOf<'Result'> | undefined
  #error: EventOf<'ErrorEvent'> | undefined

  constructor(status: Status) {
    this.#activity = activityOf(status)
  }

  get isIdle(): boolean {
    return this.#activity === 'idle'
  }

  /** The subagents that work in the background, by id. */
  get backgroundAgents(): readonly string[] {
    return [...this.#background.values()]
  }

  /** Returns true if the state is another one. */
  take(event: Event): boolean {
    switch (event.type) {
      case 'SubagentStart':
        if (!event.background) return false
        this.#background.set(event.parent_tool_use_id, event.agent_id)
        return true
      case 'Result':
        if (event.parent_tool_use_id !== undefined) return this.#background.delete(event.parent_tool_use_id)
        this.#result = event
        return false
      case 'ErrorEvent':
        if (event.parent_tool_use_id === undefined) this.#error = event
        return false
      case 'StatusUpdate':
        return this.#move(activityOf(event.status))
      default:
        return false
    }
  }

  /** The whole state, as each report has it. */
  get current(): SessionUpdate {
    const background = [...this.#background.keys()].map((toolCallId) => ({ type: 'tool_call' as const, toolCallId }))
    const report = { sessionUpdate: 'state_update', background } as const
    if (this.#activity === 'running') return { ...report, state: 'running' }
    if (this.#activity === 'requires_action') return { ...report, state: 'requires_action' }
    return { ...report, state: 'idle', ...this.#end() }
  }

  #move(activity: Activity): boolean {
    if (activity === this.#activity) return false
    if (activity === 'running' && this.#activity === 'idle') this.#result = this.#error = undefined
    this.#activity = activity
    return true
  }

  /** Why the work has ended. Nothing for a session that has not worked. */
  #end() {
    if (!this.#result && !this.#error) return {}
    const stopReason = this.#result && STOP_REASONS[this.#result.stop_reason]
    if (stopReason !== undefined) return ENDS[stopReason]
    const message = this.#error?.message ?? (this.#result ? describeEvent(this.#result) : '')
    return { stopReason: 'error' as const, error: { code: INTERNAL_ERROR, message } }
  }
}

const activityOf = (status: Status): Activity => ACTIVITIES[status] ?? 'idle'
