/**
 * The calls that wait for a client, from their `ClientToolCall` to their outcome: the result of a client, the deadline,
 * or an interruption, whichever is first. A restart of the server ends them, as it ends all calls.
 */
import type { ClientTool, PendingToolCalls } from '../../contract/client-tools/client-tool.ts'
import { DEFAULT_CLIENT_TOOL_TIMEOUT_S } from '../../contract/client-tools/client-tool.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ToolContext } from '../../tools/tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { inSubagent } from '../../state/drafts.ts'
import type { State } from '../../state/state.ts'
import { callerOf } from '../../state/subagents.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

type PendingView = PendingToolCalls['items'][number]

export type WaitingCallsDeps = {
  readonly log: Pick<EventLog, 'append'>
  readonly state: { readonly current: Pick<State, 'run' | 'subagents'> }
}

export class WaitingCalls {
  readonly #deps: WaitingCallsDeps
  readonly #calls = new Map<string, WaitingCall>()

  constructor(deps: WaitingCallsDeps) {
    this.#deps = deps
  }

  /** Returns the call if it can still be answered. */
  get(toolUseId: string): WaitingCall | undefined {
    const call = this.#calls.get(toolUseId)
    return call?.isOver === false ? call : undefined
  }

  /** In the order of the calls. */
  views(): PendingView[] {
    return [...this.#calls.values()].filter(({ isOver }) => !isOver).map(({ view }) => view)
  }

  /** Stores the call for clients and waits for its outcome. Rejects if the call could not be stored. */
  async handOver(
    { name, timeout = DEFAULT_CLIENT_TOOL_TIMEOUT_S }: ClientTool,
    input: Record<string, unknown>,
    { toolUseId, signal }: ToolContext,
  ): Promise<ToolOutcome> {
    const now = Date.now()
    const deadline = new Date(now + timeout * 1000).toISOString()
    const view = { tool_use_id: toolUseId, name, input, asked_at: new Date(now).toISOString(), deadline }
    const call = new WaitingCall(view)
    const expire = () =>
      call.giveUp('timeout', `No client sent a result of ${name} within ${timeout} s. It is not known what it did.`)
    const interrupt = () => call.giveUp('interrupted', 'The call was interrupted. The client may have executed it.')
    // Before it is stored: a client may answer at once.
    this.#calls.set(toolUseId, call)
    const timer = setTimeout(expire, timerMs(timeout * 1000))
    signal.addEventListener('abort', interrupt, { once: true })
    try {
      if (signal.aborted) interrupt()
      else await call.announce(this.#deps.log.append(this.#announcement(view)))
      return await call.outcome
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', interrupt)
      this.#calls.delete(toolUseId)
    }
  }

  #announcement(view: PendingView): EventDraft[] {
    const { current } = this.#deps.state
    const caller = callerOf(current, view.tool_use_id)
    const drafts = [announcement(view, (caller?.agent ?? current).run?.id)]
    return caller ? inSubagent(drafts, caller) : drafts
  }
}

/** One call that waits for a client. */
export class WaitingCall {
  readonly view: PendingView
  readonly outcome: Promise<ToolOutcome>
  readonly #resolve: (outcome: ToolOutcome) => void
  #announced: Promise<unknown> = Promise.resolve()
  #isAnswering = false
  /** A reason to end without an answer that came while one was being stored. */
  #late: ToolOutcome | undefined
  #isOver = false

  constructor(view: PendingView) {
    this.view = view
    const { promise, resolve } = Promise.withResolvers<ToolOutcome>()
    this.outcome = promise
    this.#resolve = resolve
  }

  get isOver(): boolean {
    return this.#isOver || this.#late !== undefined
  }

  /** An answer is not stored before the call. */
  async announce(stored: Promise<unknown>): Promise<void> {
    this.#announced = stored.catch(() => {})
    await stored
  }

  /**
   * Ends the call with the result that `store` stores. An answer that is being stored counts, even if the deadline or an
   * interruption comes meanwhile: its client learns that it was accepted. Rejects as `store` does; the call then still
   * waits. Called for one answer at a time.
   */
  async answer(store: () => Promise<ToolOutcome>): Promise<void> {
    this.#isAnswering = true
    try {
      await this.#announced
      this.#end(await store())
    } finally {
      this.#isAnswering = false
      if (this.#late) this.#end(this.#late)
    }
  }

  giveUp(type: 'timeout' | 'interrupted', message: string): void {
    const outcome = { output: message, error: { type, message } }
    if (this.#isAnswering) this.#late ??= outcome
    else this.#end(outcome)
  }

  #end(outcome: ToolOutcome): void {
    this.#isOver = true
    this.#resolve(outcome)
  }
}

function announcement({ tool_use_id, name, input, deadline }: PendingView, runId: string | undefined): EventDraft {
  const what = { tool_use_id, name, input, deadline }
  return { type: 'ClientToolCall', source: 'environment', ...(runId !== undefined && { run_id: runId }), ...what }
}
