/** What a subagent's end means for the call that it worked for. */
import type { LoopEnd } from '../../agent/loop-end.ts'
import { boundMessage, isTooLong } from '../../agent/history/subagent-message.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { CallOutcome } from '../../tools/tool.ts'
import { STAYS_OPEN } from '../../tools/tool.ts'
import type { TaskOutput } from '../../tools/task/task.ts'
import { answerOpenCalls, endOfSubagent, inRun, inSubagent, resultOfSubagent } from '../../state/drafts.ts'
import type { State, Subagent } from '../../state/state-shape.ts'
import { findSubagent, stateOf } from '../../state/subagents.ts'
import { failure } from '../../state/tool-call.ts'

const INTERRUPTED = failure('interrupted', 'The subagent was interrupted.')
const INTERRUPTED_EARLY = failure('interrupted', 'The call was interrupted before the subagent began.')

export const FAILED_INSIDE: LoopEnd = {
  stopReason: 'error',
  failure: {
    type: 'internal',
    message: 'The server failed inside the subagent; its log has the details.',
    retryable: true,
  },
}

export const faultOf = (fault: string): CallOutcome => failure('failed', fault)

export const NOT_IN_BACKGROUND = faultOf(
  'Only the main agent has subagents in the background; call Task without run_in_background.',
)

/** The call has its result at once. */
export function inBackground({ agentId, name }: Subagent): CallOutcome {
  const text = 'The subagent works in the background. A message tells you when it has ended; do not wait for it.'
  const output: TaskOutput = { agent_id: agentId, agent_name: name, stop_reason: 'background', steps: 0, text }
  return { output }
}

/** The `Result` of the subagent is stored together with the result of the call. */
export function outcomeOf(state: State, toolUseId: string, end: LoopEnd): CallOutcome {
  const subagent = findSubagent(state, toolUseId)
  if (!subagent) return STAYS_OPEN
  const own = stateOf(state, subagent)
  const { stopReason } = end
  const text = end.finalText || (own.run?.finalText ?? '')
  const output: TaskOutput = {
    agent_id: subagent.agentId,
    agent_name: subagent.name,
    stop_reason: stopReason,
    steps: own.run?.steps ?? 0,
    text: boundMessage(text),
  }
  const isDone = stopReason === 'completed' || stopReason === 'finished'
  const failure = isDone ? {} : { error: { type: 'failed' as const, message: failureOf(end, own.run?.maxSteps) } }
  const truncation = isTooLong(text) && { truncated: true }
  return { output, ...failure, ...truncation, events: endEvents(own, subagent, end) }
}

/** Its error, results of calls that did not begin, and its `Result`. */
function endEvents(own: State, subagent: Subagent, end: LoopEnd): EventDraft[] {
  const { failure, stopReason } = end
  const error: EventDraft[] = failure
    ? [
        {
          type: 'ErrorEvent',
          source: 'environment',
          ...inRun(own),
          error_type: failure.type,
          message: failure.message,
          retryable: failure.retryable,
        },
      ]
    : []
  const endsOfCalls = answerOpenCalls(own, { type: 'interrupted', why: 'interrupted', message: BEFORE_END })
  return inSubagent([...error, ...endsOfCalls, resultOfSubagent(own, subagent, stopReason, Date.now(), end)], subagent)
}

/** The outcome of a call that was interrupted, with the events of the end of its subagent. */
export function interruptedIn(state: State, toolUseId: string): CallOutcome {
  const subagent = findSubagent(state, toolUseId)
  if (!subagent || subagent.isBackground) return INTERRUPTED_EARLY
  const { message } = INTERRUPTED.error
  return { ...INTERRUPTED, events: endOfSubagent(state, subagent, 'cancelled', { message, why: 'interrupted' }) }
}

const BEFORE_END = 'interrupted: the subagent ended before this call began; it did not run'

function failureOf({ failure, stopReason }: LoopEnd, maxSteps: number | undefined): string {
  if (failure) return `The subagent failed: ${failure.message}`
  if (stopReason === 'max_steps')
    return `The subagent was stopped after ${maxSteps} steps, its limit; continue it with resume.`
  if (stopReason === 'hook') return 'A hook ended the subagent.'
  return `The subagent ended: ${stopReason}.`
}
