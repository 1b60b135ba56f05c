/** Wraps a model and reports the duration of each answer. The answers are unchanged. */
import type { ErrorType } from '../contract/events/status.ts'
import type { Llm } from './llm.ts'
import { leaveAnswer } from './llm.ts'
import { LlmError } from './errors/llm-error.ts'

export type LlmTiming = {
  readonly model: string
  readonly outcome: 'answered' | 'aborted' | ErrorType
  /** From the request to the first piece of the answer; undefined if there was none. */
  readonly firstDeltaMs: number | undefined
  readonly ms: number
}

export type LlmObserver = { readonly onRequest: () => void; readonly onEnd: (timing: LlmTiming) => void }

export function createTimedLlm(llm: Llm, { onRequest, onEnd }: LlmObserver): Llm {
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
        // For a reader that leaves early.
        await leaveAnswer(deltas)
      }
    },
  }
}
