/** One model answer: streamed as transient deltas, then stored as a whole, together with its tool calls. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { AssistantPart } from '../../contract/values/message.ts'
import type { TransientDraft } from '../../contract/events/transient-event.ts'
import type { AnswerStream, LlmAnswer, LlmPiece, LlmRetry, ModelToolCall } from '../../llm/llm.ts'
import { partOf } from '../../llm/answer/answer-assembly.ts'
import { CutAnswer, leaveAnswer } from '../../llm/llm.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { parseJsonObject } from '../../lib/json/untrusted-json.ts'
import { uuid7 } from '../../lib/uuid7.ts'

export type TurnDeps = {
  readonly runId: string
  /** Seq of the last event that the request includes. */
  readonly readThrough: number
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  readonly publish: (draft: TransientDraft) => void
  /** Returns the answer to store instead. Throws an `LlmError` if nothing of it must be used. */
  readonly onAnswer?: (answer: LlmAnswer) => Promise<LlmAnswer>
  /** True if nothing is stored without `onAnswer`: no part of an answer that did not end. */
  readonly isJudged?: () => boolean
}

/** One request to the model; of the times of `performance.now()`, the first may be the end of the wait for it. */
type Attempt = { readonly messageId: string; readonly startedAt: number; firstDeltaAt?: number }

export type Turn = {
  readonly hasCalls: boolean
  /** The provider paused the answer, and continues it with the next request. */
  readonly isPaused: boolean
  readonly text: string
  readonly stopReason: string
}

/**
 * When it resolves, answer and calls are durable. Throws the model's error, or the signal's reason when aborted, after
 * storing what arrived of the answer as `partial`; of an abort only if its reason is an `Interrupt`. Each retry is logged
 * before its wait. No tool starts before the answer is complete, so that a retry repeats only text.
 */
export async function takeTurn(stream: AnswerStream, deps: TurnDeps, signal: AbortSignal): Promise<Turn> {
  let attempt: Attempt = { messageId: uuid7(), startedAt: performance.now() }
  const abandon = () => deps.publish({ type: 'AssistantAborted', message_id: attempt.messageId, run_id: deps.runId })
  try {
    let show: ReturnType<typeof createDeltaPublisher> | undefined
    for (;;) {
      const next = await stream.next()
      if (next.done) {
        const answer = deps.onAnswer ? await checkedAnswer(next.value, deps.onAnswer, attempt, deps) : next.value
        return await storeAnswer(answer, attempt, deps)
      }
      if (next.value.kind !== 'retry') {
        attempt.firstDeltaAt ??= performance.now()
        show ??= createDeltaPublisher(attempt.messageId, deps)
        show(next.value)
        continue
      }
      signal.throwIfAborted()
      if (show) abandon()
      await deps.emit([toModelRetry(next.value, attempt.messageId, deps.runId)])
      attempt = { messageId: uuid7(), startedAt: performance.now() + next.value.waitMs }
      show = undefined
    }
  } catch (error) {
    // It waits for its next attempt, if it was the event of a retry that could not be stored.
    await leaveAnswer(stream)
    const partial = deps.isJudged?.() ? undefined : partialOf(error)
    if (partial) await storePartial(partial, attempt, deps)
    else abandon()
    throw error instanceof CutAnswer ? signal.reason : error
  }
}

/** A character that is neither a space nor without a form. */
const VISIBLE = /[^\s\p{C}]/u

function partialOf(error: unknown): LlmAnswer | undefined {
  const partial = error instanceof LlmError || error instanceof CutAnswer ? error.partial : undefined
  if (!partial || !VISIBLE.test(partial.text)) return undefined
  // The agent continues after an interruption, and providers refuse a thought that was cut off.
  return error instanceof CutAnswer ? { ...partial, reasoning: '' } : partial
}

type OnAnswer = NonNullable<TurnDeps['onAnswer']>

/** Stores only the usage of an answer that must not be used, because it was paid for. */
async function checkedAnswer(
  answer: LlmAnswer,
  onAnswer: OnAnswer,
  attempt: Attempt,
  deps: TurnDeps,
): Promise<LlmAnswer> {
  try {
    return await onAnswer(answer)
  } catch (error) {
    const { parts: _, ...rest } = answer
    if (error instanceof LlmError)
      await storePartial({ ...rest, text: '', reasoning: '' }, { ...attempt, messageId: uuid7() }, deps)
    throw error
  }
}

/** Numbers each delta by part and offset, so that a reader can detect a gap. */
function createDeltaPublisher(messageId: string, { publish, runId }: TurnDeps) {
  const offsets = new Map<string, number>()
  return (delta: LlmPiece) => {
    const call =
      delta.kind === 'tool_input' ? { tool_use_id: delta.id, ...(delta.name && { tool_name: delta.name }) } : {}
    const index = delta.kind === 'tool_input' ? delta.index : 0
    const part = partOf(delta)
    const offset = offsets.get(part) ?? 0
    offsets.set(part, offset + delta.text.length)
    publish({
      type: 'AssistantDelta',
      run_id: runId,
      message_id: messageId,
      index,
      ...call,
      offset,
      [DELTA_FIELD[delta.kind]]: delta.text,
    })
  }
}

const DELTA_FIELD = { text: 'text_delta', reasoning: 'reasoning_delta', tool_input: 'tool_input_delta' } as const

export function toModelRetry(attempt: LlmRetry, messageId: string, runId: string | undefined) {
  const { type, message, retry, maxRetries, waitMs, nextModel } = attempt
  return {
    type: 'ModelRetry',
    source: 'environment',
    ...(runId !== undefined && { run_id: runId }),
    message_id: messageId,
    error_type: type,
    message,
    retry,
    max_retries: maxRetries,
    wait_ms: waitMs,
    ...(nextModel !== undefined && { next_model: nextModel }),
  } as const satisfies EventDraft
}

async function storeAnswer(answer: LlmAnswer, attempt: Attempt, deps: TurnDeps): Promise<Turn> {
  const uses = answer.toolCalls.map((call): EventDraft => {
    const input = parseInput(call)
    return { type: 'ToolUse', source: 'agent', run_id: deps.runId, tool_use_id: call.id, name: call.name, input }
  })
  // One batch: after a crash the log has the answer with all of its calls, or neither.
  await deps.emit([assistantMessage(answer, attempt, deps), ...uses])
  // The next request would be the same as this one if there were no text.
  const isPaused = answer.stopReason === 'pause_turn' && answer.text.trim() !== ''
  return { hasCalls: uses.length > 0, isPaused, text: answer.text, stopReason: answer.stopReason }
}

async function storePartial(answer: LlmAnswer, attempt: Attempt, deps: TurnDeps): Promise<void> {
  await deps.emit([{ ...assistantMessage({ ...answer, toolCalls: [] }, attempt, deps), partial: true }])
}

function assistantMessage(answer: LlmAnswer, attempt: Attempt, { runId, readThrough }: TurnDeps) {
  const { messageId, startedAt, firstDeltaAt } = attempt
  // Providers refuse a message that is only white space, and with it every later request of the conversation.
  const text = answer.text.trim() === '' ? '' : answer.text
  return {
    type: 'AssistantMessage',
    source: 'agent',
    run_id: runId,
    message_id: messageId,
    text,
    content: answer.parts ? [...answer.parts] : partsOf(answer.reasoning, text),
    tool_use_ids: answer.toolCalls.map((call) => call.id),
    model: answer.model,
    ...(answer.provider !== undefined && { provider: answer.provider }),
    duration_ms: Math.max(0, Math.round(performance.now() - startedAt)),
    ...(firstDeltaAt !== undefined && { first_delta_ms: Math.max(0, Math.round(firstDeltaAt - startedAt)) }),
    usage: answer.usage,
    ...(answer.costUsd !== undefined && { cost_usd: answer.costUsd }),
    stop_reason: answer.stopReason,
    read_through: readThrough,
  } as const satisfies EventDraft
}

function partsOf(reasoning: string, text: string): AssistantPart[] {
  return [
    ...(reasoning ? [{ type: 'reasoning' as const, text: reasoning }] : []),
    ...(text ? [{ type: 'text' as const, text }] : []),
  ]
}

/** Parses the arguments, or returns the text if it is not an object: the call's result will report the error. */
function parseInput({ arguments: text }: ModelToolCall): unknown {
  return parseJsonObject(text) ?? text
}
