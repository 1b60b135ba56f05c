/** What the metrics learn of one conversation: one more reader of its log, and a look at when its model is asked. */
import type { Event } from '../../contract/events/event.ts'
import type { Llm } from '../../llm/llm.ts'
import { createTimedLlm } from '../../llm/timed-llm.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { TOOL_NAMES } from '../../tools/registry.ts'
import type { State } from '../state/state.ts'

export type Meter = {
  /** Each event, in order, as soon as it is durable. */
  readonly take: (event: Event) => void
  readonly time: (llm: Llm) => Llm
}

export function createMeter(metrics: Metrics, { run, openCalls }: State): Meter {
  const toolNames = new Map(openCalls.map((call) => [call.toolUseId, call.name]))
  let runId = run?.id
  /** When the last answer of the run that works now came to its end; undefined while there is none, or none that counts. */
  let answeredAt: number | undefined
  let toolMs = 0

  const time = (llm: Llm) =>
    createTimedLlm(llm, {
      onRequest() {
        if (answeredAt !== undefined) metrics.stepOverhead(Math.max(0, performance.now() - answeredAt - toolMs))
        answeredAt = undefined
      },
      onEnd(timing) {
        metrics.modelAnswered(timing)
        answeredAt = timing.outcome === 'answered' ? performance.now() : undefined
        toolMs = 0
      },
    })

  function take(event: Event): void {
    switch (event.type) {
      case 'AssistantMessage':
        return metrics.step(event.model, event.usage)
      case 'ToolUse':
        return void toolNames.set(event.tool_use_id, event.name)
      case 'ToolResult': {
        toolMs += event.duration_ms
        const name = toolNames.get(event.tool_use_id) ?? ''
        toolNames.delete(event.tool_use_id)
        // A model may call a tool by any name.
        return metrics.toolCalled(isTool(name) ? name : 'unknown', event.error_type ?? 'ok')
      }
      case 'StatusUpdate':
        // A pause, a question or a place in the queue is nothing that the server takes for itself.
        answeredAt = undefined
        if (event.run_id === undefined || event.run_id === runId) return undefined
        runId = event.run_id
        return metrics.runStarted()
      case 'Result':
        return event.parent_tool_use_id === undefined ? metrics.runEnded(event.stop_reason) : undefined
      default:
        return undefined
    }
  }

  return { take, time }
}

const isTool = (name: string) => (TOOL_NAMES as readonly string[]).includes(name)
