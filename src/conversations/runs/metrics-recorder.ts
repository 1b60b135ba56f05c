/** Records the metrics of one conversation, from its log and from its model requests. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { ErrorType } from '../../contract/events/status.ts'
import type { EventLog } from '../../events/event-log.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import type { Llm } from '../../llm/llm.ts'
import { leaveAnswer } from '../../llm/llm.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { TOOL_NAMES } from '../../tools/registry.ts'
import type { State } from '../../state/state.ts'

export class MetricsRecorder {
  readonly #metrics: Metrics
  readonly #toolNames: Map<string, string>
  #runId: string | undefined
  /** The time when the model finished the last stored answer of the active run. Undefined before the first one. */
  #answeredAt: number | undefined
  /** The times when the model was asked last, and when it last answered: not each answer is stored. */
  #requestedAt = 0
  #endedAt = 0
  #toolMs = 0

  constructor(metrics: Metrics, log: Pick<EventLog, 'subscribe'>, { run, openCalls }: State) {
    this.#metrics = metrics
    this.#runId = run?.id
    this.#toolNames = new Map(openCalls.map((call) => [call.toolUseId, call.name]))
    log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) this.#take(event)
      },
    })
  }

  /** Returns the model with timing, for subagents: several work at the same time, and no step is between their requests. */
  timeSubagent(llm: Llm): Llm {
    return createTimedLlm(llm, { onRequest: () => {}, onEnd: (timing) => this.#metrics.modelAnswered(timing) })
  }

  /** Returns the model with timing. */
  time(llm: Llm): Llm {
    return createTimedLlm(llm, {
      onRequest: () => (this.#requestedAt = performance.now()),
      onEnd: (timing) => {
        this.#metrics.modelAnswered(timing)
        this.#endedAt = performance.now()
      },
    })
  }

  #take(event: Event): void {
    switch (event.type) {
      case 'AssistantMessage':
        this.#metrics.step(event.model, event.usage)
        return this.#stored(event)
      case 'Condensation':
        return event.model === undefined ? undefined : this.#stored(event)
      case 'ToolUse':
        return void this.#toolNames.set(event.tool_use_id, event.name)
      case 'ToolResult': {
        if (event.parent_tool_use_id === undefined) this.#toolMs += event.duration_ms
        const name = this.#toolNames.get(event.tool_use_id) ?? ''
        this.#toolNames.delete(event.tool_use_id)
        // A model may call a tool by any name.
        return this.#metrics.toolCalled(isTool(name) ? name : 'unknown', event.error_type ?? 'ok')
      }
      case 'StatusUpdate':
        // Time spent in a pause, a question or the queue is not the server's own latency.
        this.#answeredAt = undefined
        if (event.run_id === undefined || event.run_id === this.#runId) return undefined
        this.#runId = event.run_id
        return this.#metrics.runStarted()
      case 'Result':
        return event.parent_tool_use_id === undefined ? this.#metrics.runEnded(event.stop_reason) : undefined
      default:
        return undefined
    }
  }

  /** Records the overhead now, because the request may have been sent before the last tool result was stored. */
  #stored({ parent_tool_use_id }: EventOf<'AssistantMessage' | 'Condensation'>): void {
    if (parent_tool_use_id !== undefined) return
    const since = this.#answeredAt
    if (since !== undefined) this.#metrics.stepOverhead(Math.max(0, this.#requestedAt - since - this.#toolMs))
    this.#answeredAt = this.#endedAt
    this.#toolMs = 0
  }
}

const isTool = (name: string) => (TOOL_NAMES as readonly string[]).includes(name)

type LlmTiming = {
  readonly model: string
  readonly outcome: 'answered' | 'aborted' | ErrorType
  /** The time from the request to the first piece of the answer; undefined if there was none. */
  readonly firstDeltaMs: number | undefined
  readonly ms: number
}

type LlmObserver = { readonly onRequest: () => void; readonly onEnd: (timing: LlmTiming) => void }

/** Returns the model, and reports the duration of each answer. The answers are unchanged. */
function createTimedLlm(llm: Llm, { onRequest, onEnd }: LlmObserver): Llm {
  return {
    model: llm.model,
    async *stream(request, signal) {
      onRequest()
      const startedAt = performance.now()
      let firstDeltaMs: number | undefined
      let outcome: LlmTiming['outcome'] = 'aborted'
      const deltas = llm.stream(request, signal)
      try {
        for (;;) {
          const next = await deltas.next()
          if (next.done) {
            outcome = 'answered'
            return next.value
          }
          if (next.value.kind !== 'retry') firstDeltaMs ??= performance.now() - startedAt
          yield next.value
        }
      } catch (error) {
        if (!signal.aborted) outcome = error instanceof LlmError ? error.type : 'internal'
        throw error
      } finally {
        onEnd({ model: llm.model, outcome, firstDeltaMs, ms: performance.now() - startedAt })
        // A reader may leave early.
        await leaveAnswer(deltas)
      }
    },
  }
}
