/**
 * Calls that clients execute. A call waits inside its run at first, so that a fast client costs no change of the status.
 * After that it rests: the run leaves its slot, and continues with the result. All that is known of it is in the log.
 */
import type { EventDraft } from '../../contract/events/event.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import type { EventLog } from '../../events/event-log.ts'
import { timerMs } from '../../lib/bounded-wait.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { outcomeOf } from '../../state/client-outcome.ts'
import { isHandedOver } from '../../state/client-result.ts'
import { inRun, inSubagent, MAY_HAVE_RUN } from '../../state/drafts.ts'
import { clientCallsOf } from '../../state/open-requests.ts'
import { closing } from '../../state/request-drafts.ts'
import { callerOf } from '../../state/subagents.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { CallOutcome, ToolContext } from '../../tools/tool.ts'
import { STAYS_OPEN } from '../../tools/tool.ts'
import type { EndingRequests } from '../live/ending-requests.ts'
import type { LiveState } from '../live/live-state.ts'

/** How long a call waits inside its run, in milliseconds. */
const REST_AFTER_MS = 5000

export type HandedOverDeps = {
  readonly log: Pick<EventLog, 'append' | 'subscribe'>
  readonly state: LiveState
  readonly ending: Pick<EndingRequests, 'end'>
  /** Replaces `REST_AFTER_MS`. */
  readonly restAfterMs?: number | undefined
}

type Call = Pick<ToolContext, 'toolUseId' | 'signal'> & { readonly input: Record<string, unknown> }

const INTERRUPTED = failure('interrupted', MAY_HAVE_RUN)

export class HandedOverCalls {
  readonly #deps: HandedOverDeps
  readonly #restAfterMs: number
  readonly #waiting = new Set<() => void>()
  #isClosing = false

  constructor(deps: HandedOverDeps) {
    this.#deps = deps
    this.#restAfterMs = deps.restAfterMs ?? REST_AFTER_MS
  }

  /** Hands the call over, or waits again for one that was handed over before. Rejects if it could not be stored. */
  async handOver({ name, timeout }: ClientTool, { toolUseId, input, signal }: Call): Promise<CallOutcome> {
    if (!this.isHandedOver(toolUseId)) {
      if (signal.aborted) return INTERRUPTED
      // The subagent that made the call has ended.
      if (!this.#callOf(toolUseId)) return STAYS_OPEN
      await this.#open(toolUseId, { name, input }, timeout)
    }
    await this.#wait(toolUseId, signal)
    return await this.#deps.ending.end(() => this.#outcome(toolUseId, signal))
  }

  /** True if a client executes the call, or has executed it. */
  isHandedOver(toolUseId: string): boolean {
    const call = this.#callOf(toolUseId)
    return call !== undefined && isHandedOver(this.#deps.state.current, call)
  }

  /** True if a client executes, or has executed, a call of this tool. */
  areOf(name: string): boolean {
    const { current } = this.#deps.state
    const calls = [current, ...current.subagents.map(({ agent }) => agent)].flatMap(({ openCalls }) => openCalls)
    return calls.some((call) => call.name === name && isHandedOver(current, call))
  }

  /** The server stops, or frees memory: the calls rest. */
  close(): void {
    this.#isClosing = true
    for (const leave of this.#waiting) leave()
  }

  #callOf(toolUseId: string): ToolCall | undefined {
    const { current } = this.#deps.state
    const { openCalls } = callerOf(current, toolUseId)?.agent ?? current
    return openCalls.find((call) => call.toolUseId === toolUseId)
  }

  #requestOf(toolUseId: string) {
    return clientCallsOf(this.#deps.state.current).find(({ tool_use_ids }) => tool_use_ids.includes(toolUseId))
  }

  #outcome(toolUseId: string, signal: AbortSignal): CallOutcome {
    const result = this.#callOf(toolUseId)?.clientResult
    if (result) return outcomeOf(result)
    if (!signal.aborted || this.#isClosing) return STAYS_OPEN
    const request = this.#requestOf(toolUseId)
    const { current } = this.#deps.state
    const run = inRun(callerOf(current, toolUseId)?.agent ?? current)
    return { ...INTERRUPTED, ...(request && { events: [{ ...closing(request, 'interrupted'), ...run }] }) }
  }

  async #open(
    toolUseId: string,
    payload: { readonly name: string; readonly input: Record<string, unknown> },
    timeout: number | undefined,
  ): Promise<void> {
    const { log, state } = this.#deps
    const caller = callerOf(state.current, toolUseId)
    const opening: EventDraft = {
      type: 'RequestOpened',
      source: 'environment',
      ...inRun(caller?.agent ?? state.current),
      kind: 'client_tool',
      request_id: uuid7(),
      ...(timeout !== undefined && { deadline: new Date(Date.now() + timeout * 1000).toISOString() }),
      tool_use_ids: [toolUseId],
      payload,
    }
    await log.append(caller ? inSubagent([opening], caller) : [opening])
  }

  /** Resolves when the call has a result, must end, or rests. */
  async #wait(toolUseId: string, signal: AbortSignal): Promise<void> {
    if (this.#isClosing) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = () => (this.#requestOf(toolUseId) ? undefined : resolve())
    const timer = setTimeout(resolve, timerMs(this.#restAfterMs))
    const unsubscribe = this.#deps.log.subscribe({ onEvents: check, onClose: () => resolve() })
    signal.addEventListener('abort', () => resolve(), { once: true })
    this.#waiting.add(resolve)
    try {
      check()
      if (!signal.aborted) await promise
    } finally {
      clearTimeout(timer)
      unsubscribe()
      this.#waiting.delete(resolve)
    }
  }
}
