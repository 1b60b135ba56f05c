/**
 * The subagents of a turn, which are announced before anything of them is shown, and closed before the run ends. Those that work in
 * the background are not shown: nothing may follow the end of a run. Pure.
 */
import type { EventOf } from '../../contract/events/event.ts'
import type { AgUiEvent } from './ag-ui-event.ts'
import { subagentRunIdOf } from './ag-ui-event.ts'
import type { AgUiInterrupt } from './interrupts.ts'

type Invocation = {
  readonly id: string
  readonly start: EventOf<'SubagentStart'>
  phase: 'unseen' | 'open' | 'closed'
}

export class Invocations {
  /** False for what was before the run. */
  isShown = false
  readonly #put: (event: AgUiEvent) => void
  /** The key is their `Task` call. */
  readonly #byCall = new Map<string, Invocation>()
  /** The key is a call of a subagent, the value the `Task` call of that subagent. */
  readonly #callers = new Map<string, string>()

  constructor(put: (event: AgUiEvent) => void) {
    this.#put = put
  }

  start(start: EventOf<'SubagentStart'>): void {
    if (start.background) return
    const { parent_tool_use_id: call } = start
    this.#byCall.set(call, { id: subagentRunIdOf(start), start, phase: 'unseen' })
    this.#announce(call)
  }

  /** Remembers the subagent that has made a call, which may begin another one. */
  note({ tool_use_id: id, parent_tool_use_id: caller }: EventOf<'ToolUse'>): void {
    if (caller !== undefined) this.#callers.set(id, caller)
  }

  idOf(call: string): string | undefined {
    return this.#byCall.get(call)?.id
  }

  /** Shows what the subagent of this `Task` call does, if it is shown at all. */
  within(call: string, show: (tag: { readonly subagentRunId: string }) => void): void {
    const invocation = this.#byCall.get(call)
    if (!invocation || invocation.phase === 'closed') return
    this.#announce(call)
    show({ subagentRunId: invocation.id })
  }

  end(call: string, { stop_reason: reason, final_text: text }: EventOf<'Result'>): void {
    this.within(call, ({ subagentRunId }) => {
      const isDone = reason === 'completed' || reason === 'finished'
      const message = text === '' ? `The subagent ended: ${reason}.` : text
      this.#close(call, isDone ? finishEvent(subagentRunId) : errorEvent(subagentRunId, message, reason))
    })
  }

  /** Ends the invocation of a call whose subagent has no result itself. */
  endOfCall({ tool_use_id: call, is_error: isError }: EventOf<'ToolResult'>): void {
    this.within(call, ({ subagentRunId }) => {
      this.#close(call, isError ? errorEvent(subagentRunId, 'The subagent was stopped.') : finishEvent(subagentRunId))
    })
  }

  /** `interrupts`: the run waits for them, and the subagents with it. */
  endAll(interrupts: readonly AgUiInterrupt[] | undefined): void {
    const open = [...this.#byCall].filter(([, { phase }]) => phase === 'open')
    // A subagent of a subagent is closed first.
    for (const [call, { id }] of open.toReversed()) {
      const interruptIds = interrupts?.filter(({ subagentRunId }) => subagentRunId === id).map((each) => each.id) ?? []
      const outcome = { type: 'suspended', ...(interruptIds.length > 0 && { interruptIds }) }
      this.#close(call, interrupts ? { ...finishEvent(id), outcome } : errorEvent(id, 'The run ended.'))
    }
  }

  #announce(call: string): void {
    const invocation = this.#byCall.get(call)
    if (!this.isShown || invocation?.phase !== 'unseen') return
    const caller = this.#callers.get(call)
    if (caller !== undefined) this.#announce(caller)
    const parentSubagentRunId = caller === undefined ? undefined : this.#byCall.get(caller)?.id
    invocation.phase = 'open'
    const { agent_name: name, description } = invocation.start
    this.#put({
      type: 'SUBAGENT_STARTED',
      subagentRunId: invocation.id,
      name,
      description,
      parentToolCallId: call,
      ...(parentSubagentRunId !== undefined && { parentSubagentRunId }),
    })
  }

  #close(call: string, event: AgUiEvent): void {
    const invocation = this.#byCall.get(call)
    if (!invocation) return
    invocation.phase = 'closed'
    this.#put(event)
  }
}

const finishEvent = (subagentRunId: string): AgUiEvent => ({ type: 'SUBAGENT_FINISHED', subagentRunId })

const errorEvent = (subagentRunId: string, message: string, code?: string): AgUiEvent => ({
  type: 'SUBAGENT_ERROR',
  subagentRunId,
  message,
  ...(code !== undefined && { code }),
})
