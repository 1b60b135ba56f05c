/** The calls of one turn, for the hooks that follow all of them: `PostToolBatch`. */
import type { Event, EventDraft } from '../../contract/events/event.ts'
import type { ResultDraft } from '../../agent/history/tool-messages.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import { givenParameters } from '../../agent/tool-input.ts'
import { showCall } from '../../hooks/claude-tools.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import type { AgentView } from '../live/live-state.ts'
import type { AgentHookCaller } from './hook-caller.ts'

export type ToolBatchDeps = {
  readonly caller: AgentHookCaller
  readonly state: AgentView
  readonly toolCalls: () => Pick<ToolCalls, 'readInput' | 'hasBegun'>
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  /** Calls the listener with each event that was stored. Returns an idempotent unsubscribe function. */
  readonly follow: (listener: (event: Event) => void) => () => void
}

type ShownResult = {
  readonly tool_name: string
  readonly tool_input: unknown
  readonly tool_use_id: string
  readonly tool_response?: unknown
}

export class ToolBatch {
  readonly #deps: ToolBatchDeps
  /** The results in the order of the turn. */
  readonly #calls = new Map<string, ShownResult>()
  /** The hooks are not called for a turn that somebody has interrupted. */
  #isInterrupted = false
  #unfollow: (() => void) | undefined

  constructor(deps: ToolBatchDeps) {
    this.#deps = deps
  }

  /** Adds the open calls of the turn. Their results follow, unless others store them. */
  note(calls: readonly ToolCall[]): void {
    if (!this.#deps.caller.has('PostToolBatch')) return
    for (const call of calls) if (!this.#calls.has(call.toolUseId)) this.#calls.set(call.toolUseId, this.#shown(call))
    if (this.#calls.size > 0) this.#unfollow ??= this.#deps.follow((event) => this.#see(event))
  }

  add(call: ToolCall, { is_error, error_message, output }: ResultDraft): void {
    if (!this.#calls.has(call.toolUseId)) return
    const tool_response = is_error ? (error_message ?? output) : output
    this.#calls.set(call.toolUseId, { ...this.#shown(call), tool_response })
  }

  /** Forgets the turn. */
  drop(): void {
    this.#calls.clear()
    this.#isInterrupted = false
    this.#unfollow?.()
    this.#unfollow = undefined
  }

  /**
   * Calls the hooks once for all calls, or never if the turn was interrupted. Resolves to true if one of them ends the run.
   * Rejects when aborted.
   */
  async end(signal: AbortSignal): Promise<boolean> {
    if (this.#calls.size === 0) return false
    const { caller, emit } = this.#deps
    const fields = { tool_calls: [...this.#calls.values()] }
    const isInterrupted = this.#isInterrupted
    // A hook that is ended with the run is not called a second time by the next one.
    this.drop()
    if (isInterrupted) return false
    const runs = await caller.call({ point: 'PostToolBatch', fields }, signal)
    const events = caller.eventsOf('PostToolBatch', runs)
    if (events.length > 0) await emit(events)
    return runs.some(({ answer }) => answer.block !== undefined || answer.stop !== undefined)
  }

  /** Notes results that no tool has returned, too: those of calls that will not begin. */
  #see(event: Event): void {
    if (event.type !== 'ToolResult' || event.error_type !== 'interrupted') return
    if (this.#calls.has(event.tool_use_id)) this.#isInterrupted = true
  }

  #shown({ toolUseId, name, input }: ToolCall): ShownResult {
    const { state, toolCalls } = this.#deps
    const toolInput = toolCalls().readInput(name, input)
    const isRead = typeof input === 'object' && input !== null && 'accepted' in toolInput
    const shownCall = isRead
      ? showCall(name, givenParameters(input, toolInput.accepted), state.current.settings.workdir)
      : { name, input }
    return { tool_name: shownCall.name, tool_input: shownCall.input, tool_use_id: toolUseId }
  }
}
