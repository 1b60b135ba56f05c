/** The agent: ask the model, run what it calls, ask again, until it has said what it wanted to say or a limit is met. */
import type { EventDraft } from '../contract/events/event.ts'
import type { ErrorType, StopReason } from '../contract/events/status.ts'
import type { TransientDraft } from '../contract/events/transient-event.ts'
import type { AskedToolUse } from '../contract/permission.ts'
import type { CutReason } from '../llm/answer/finish-reason.ts'
import { cutReasonOf } from '../llm/answer/finish-reason.ts'
import type { Llm, ModelTool } from '../llm/llm.ts'
import { LlmError } from '../llm/llm.ts'
import type { History } from './history.ts'
import { STUCK_AT } from './repeats.ts'
import type { FinishedCall, ToolCall, ToolCalls } from './tool-calls.ts'
import type { Turn } from './turn.ts'
import { takeTurn } from './turn.ts'

/** What the loop knows of its conversation. The functions answer with what holds now: configuration may change between two steps. */
export type AgentContext = {
  readonly runId: string
  readonly history: History
  readonly toolCalls: ToolCalls
  /** None of whose words is a secret. */
  readonly llm: () => Llm
  /** Calls that have no result yet, in order. */
  readonly openCalls: () => readonly ToolCall[]
  /** Those of them that have not begun and need a decision first: while there is one, no further call begins. */
  readonly callsToAsk: () => readonly AskedToolUse[]
  /** Models found to take no tools: told once, and asked without from then on. */
  readonly withoutTools: Set<string>
  /** Model answers so far in this run. */
  readonly steps: () => number
  /** How often the same failing calls came in a row, as `countRepeats` counts. */
  readonly repeats: () => number
  readonly limits: () => { readonly maxSteps: number | undefined; readonly maxIterations: number }
  /** Told right before each model request: messages stored later are not part of it. Returns the seq of the last event that is. */
  readonly onRequest: () => number
}

/** Where events go. `emit` resolves when they are durable; `publish` is for what is only shown. */
export type Output = {
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  readonly publish: (draft: TransientDraft) => void
}

/** The loop stops here until these calls are decided. */
export type LoopWait = { readonly asks: readonly AskedToolUse[] }

export type LoopEnd = {
  readonly stopReason: StopReason
  /** What the agent said by finishing; without it, its last message is the last word. */
  readonly finalText?: string
  readonly failure?: { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }
}

/**
 * Runs until there is nothing left to do and says why it stopped. The signal stops it at once: the model call is aborted,
 * a running tool is left to finish by itself, and nothing more is emitted by the loop. It throws only when an event could
 * not be stored.
 */
export async function runAgent(
  context: AgentContext,
  output: Output,
  signal: AbortSignal,
): Promise<LoopEnd | LoopWait> {
  for (;;) {
    const ran = await runOpenCalls(context, signal)
    if (!ran) return { stopReason: 'paused' }
    if ('asks' in ran) return ran
    if (ran.finishes) return { stopReason: 'finished', finalText: ran.finalText }
    const limit = metLimit(context)
    if (limit) return limit

    try {
      const turn = await askModel(context, output, signal)
      if (turn.hasCalls) continue
      const cutReason = cutReasonOf(turn.stopReason)
      return cutReason ? CUT_OFF[cutReason] : { stopReason: 'completed' }
    } catch (error) {
      if (signal.aborted) return { stopReason: 'paused' }
      if (!(error instanceof LlmError)) throw error
      const { type, message, retryable } = error
      return { stopReason: 'error', failure: { type, message, retryable } }
    }
  }
}

/** One after the other, in the order of the turn. Undefined when the signal came in between. */
async function runOpenCalls(context: AgentContext, signal: AbortSignal): Promise<FinishedCall | LoopWait | undefined> {
  const { toolCalls } = context
  let last: FinishedCall = { finishes: false }
  for (let call = nextCall(context); call; call = nextCall(context)) {
    if (signal.aborted) return undefined
    // Nothing is awaited between this look and the start of the call: a mode that is stored by now holds for it.
    const asks = toolCalls.hasBegun(call.toolUseId) ? [] : context.callsToAsk()
    if (asks.length) return { asks }
    const finished = await orAborted(toolCalls.run(call), signal)
    if (!finished) return undefined
    if (finished.finishes) last = finished
  }
  return last
}

/** What a pause left running ends before another call begins, so of a turn at most one call is ever under way. */
function nextCall({ openCalls, toolCalls }: AgentContext): ToolCall | undefined {
  const open = openCalls()
  return open.find((call) => toolCalls.hasBegun(call.toolUseId)) ?? open[0]
}

/** What was left out may have been a tool call, so this is no end that the model chose. */
const CUT_OFF: Readonly<Record<CutReason, LoopEnd>> = {
  output_limit: {
    stopReason: 'error',
    failure: {
      type: 'config',
      message:
        'The answer was cut off at the output limit of the model; raise llm_config.max_output_tokens, or run again.',
      retryable: true,
    },
  },
  content_filter: {
    stopReason: 'content_filter',
    failure: {
      type: 'content_filter',
      message: "The provider's content filter ended the answer; change what was said, or use another model.",
      retryable: false,
    },
  },
  context_window: {
    stopReason: 'error',
    failure: {
      type: 'context_window',
      message: "The answer was cut off: the conversation no longer fits the model's context window.",
      retryable: false,
    },
  },
}

async function askModel(context: AgentContext, output: Output, signal: AbortSignal): Promise<Turn> {
  const llm = context.llm()
  const { history, toolCalls, runId } = context
  const ask = (tools: readonly ModelTool[]) => {
    const deps = { runId, readThrough: context.onRequest(), ...output }
    return takeTurn(llm, { system: history.system, messages: history.messagesToSend(), tools }, deps, signal)
  }
  try {
    return await ask(context.withoutTools.has(llm.model) ? [] : toolCalls.descriptions)
  } catch (error) {
    if (!(error instanceof LlmError && error.lacksTools) || context.withoutTools.has(llm.model)) throw error
    context.withoutTools.add(llm.model)
    await output.emit([warnOfMissingTools(llm.model, runId)])
    return await ask([])
  }
}

function warnOfMissingTools(model: string, run_id: string): EventDraft {
  const message = `${model} does not take tools at this endpoint; the agent goes on without them and can only talk.`
  return { type: 'ErrorEvent', source: 'environment', run_id, error_type: 'config', message, retryable: false }
}

function metLimit(context: AgentContext): LoopEnd | undefined {
  const { maxSteps, maxIterations } = context.limits()
  if (context.repeats() >= STUCK_AT) return STUCK
  if (maxSteps !== undefined && context.steps() >= maxSteps) return { stopReason: 'max_steps' }
  if (context.steps() >= maxIterations) {
    const message = `The run took ${maxIterations} steps without an end; raise max_iteration_per_run, or run it again.`
    return { stopReason: 'iteration_limit', failure: { type: 'config', message, retryable: true } }
  }
  return undefined
}

const STUCK: LoopEnd = {
  stopReason: 'stuck',
  failure: {
    type: 'tool',
    message: 'The agent made the same failing calls again and again. Tell it what to do differently, or run it again.',
    retryable: false,
  },
}

export function timeLimit(): LoopEnd {
  const message = 'The run took longer than max_seconds_per_run; raise it, or run again.'
  return { stopReason: 'time_limit', failure: { type: 'config', message, retryable: true } }
}

/** Undefined when the signal comes first; the promise then goes on by itself, for the next run to await. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>()
  const onAbort = () => resolve(undefined)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
