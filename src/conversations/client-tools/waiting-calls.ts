/**
 * The calls that wait for a client, from their `RequestOpened` to their outcome: the result of a client, the deadline,
 * or an interruption, whichever is first. A restart of the server ends them, as it ends all calls.
 */
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { DEFAULT_CLIENT_TOOL_TIMEOUT_S } from '../../contract/client-tools/client-tool.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ToolContext } from '../../tools/tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { inRun, inSubagent } from '../../state/drafts.ts'
import { closing } from '../../state/request-drafts.ts'
import type { State } from '../../state/state.ts'
import type { Subagent } from '../../state/state-shape.ts'
import { callerOf } from '../../state/subagents.ts'
import { timerMs } from '../../lib/bounded-wait.ts'
import { uuid7 } from '../../lib/uuid7.ts'

type View = OpenRequestOf<'client_tool'>

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
  get(requestId: string): WaitingCall | undefined {
    const call = this.#calls.get(requestId)
    return call?.isOver === false ? call : undefined
  }

  /** In the order of the calls. */
  views(): View[] {
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
    const view: View = {
      kind: 'client_tool',
      request_id: uuid7(),
      opened_at: new Date(now).toISOString(),
      deadline,
      tool_use_ids: [toolUseId],
      ...agentOf(callerOf(this.#deps.state.current, toolUseId)),
      payload: { name, input },
    }
    const call = new WaitingCall(toolUseId, view)
    const expire = () =>
      call.giveUp('timeout', `No client sent a result of ${name} within ${timeout} s. It is not known what it did.`)
    const interrupt = () => call.giveUp('interrupted', 'The call was interrupted. The client may have executed it.')
    // Before it is stored: a client may answer at once.
    this.#calls.set(view.request_id, call)
    const timer = setTimeout(expire, timerMs(timeout * 1000))
    signal.addEventListener('abort', interrupt, { once: true })
    try {
      if (signal.aborted) interrupt()
      else await call.announce(this.#deps.log.append(this.#ofCall(call, opening(call))))
      const outcome = await call.outcome
      // Without it, the result of the call ends the request: the log may be closed already.
      if (call.closedBy) await this.#deps.log.append(this.#ofCall(call, closing(view, call.closedBy))).catch(() => {})
      return outcome
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', interrupt)
      this.#calls.delete(view.request_id)
    }
  }

  /** The event of the run, and of the subagent, that made the call. */
  #ofCall({ toolUseId }: WaitingCall, draft: EventDraft): EventDraft[] {
    const { current } = this.#deps.state
    const caller = callerOf(current, toolUseId)
    const drafts = [{ ...draft, ...inRun(caller?.agent ?? current) }]
    return caller ? inSubagent(drafts, caller) : drafts
  }
}

/** The end of a call that no client has answered. */
type Ending = { readonly by: 'timeout' | 'interrupted'; readonly message: string }

/** One call that waits for a client. */
export class WaitingCall {
  readonly toolUseId: string
  readonly view: View
  readonly outcome: Promise<ToolOutcome>
  readonly #resolve: (outcome: ToolOutcome) => void
  #announced: Promise<unknown> = Promise.resolve()
  #isAnswering = false
  /** A reason to end without an answer that came while one was being stored. */
  #late: Ending | undefined
  #isOver = false
  #closedBy: Ending['by'] | undefined

  constructor(toolUseId: string, view: View) {
    this.toolUseId = toolUseId
    this.view = view
    const { promise, resolve } = Promise.withResolvers<ToolOutcome>()
    this.outcome = promise
    this.#resolve = resolve
  }

  get isOver(): boolean {
    return this.#isOver || this.#late !== undefined
  }

  /** Why it ended without an answer; undefined if it has one, or still waits. */
  get closedBy(): Ending['by'] | undefined {
    return this.#closedBy
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
      if (this.#late && !this.#isOver) this.#close(this.#late)
    }
  }

  giveUp(by: Ending['by'], message: string): void {
    if (this.#isAnswering) this.#late ??= { by, message }
    else if (!this.#isOver) this.#close({ by, message })
  }

  #close({ by, message }: Ending): void {
    this.#closedBy = by
    this.#end({ output: message, error: { type: by, message } })
  }

  #end(outcome: ToolOutcome): void {
    this.#isOver = true
    this.#resolve(outcome)
  }
}

function opening({ toolUseId, view }: WaitingCall): EventDraft {
  const { kind, request_id, deadline, payload } = view
  const what = { kind, request_id, tool_use_ids: [toolUseId], ...(deadline !== undefined && { deadline }), payload }
  return { type: 'RequestOpened', source: 'environment', ...what }
}

const agentOf = (caller: Subagent | undefined) =>
  caller && { parent_tool_use_id: caller.toolUseId, agent_name: caller.name }
