/**
 * Asks a model for a summary. An answer without one leads to another attempt, and finally to no summary; failures of the
 * provider that are not about the content are thrown.
 */
import type { Usage } from '../../contract/values/message.ts'
import { addCost, addUsage, NO_USAGE } from '../../contract/values/message.ts'
import { cutReasonOf } from '../../contract/finish-reason.ts'
import type { Llm, LlmAnswer, LlmRequest, LlmRetry } from '../../llm/llm.ts'
import { leaveAnswer } from '../../llm/llm.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { tokensOfMessage, tokensOfText } from '../history/context-size.ts'

/** Text, reasoning and arguments together: a model that does not end is cut off. */
const MAX_ANSWER_CHARS = 400_000

/** A summary may be longer than asked for by this factor; the rest is cut off. */
const TOLERANCE = 2

export type SummaryTask = {
  readonly llm: Llm
  /** Tried in this order. */
  readonly requests: readonly (() => LlmRequest)[]
  readonly maxChars: number
  /** Returns the cost of an answer that was cut off. */
  readonly costOf: (usage: Usage) => number | undefined
  readonly onRetry: (retry: LlmRetry) => Promise<void>
}

/** `text` is undefined if no attempt gave one; `failure` says why. */
export type SummaryOutcome = {
  readonly text?: string
  readonly failure?: string
  readonly model: string
  readonly usage: Usage
  readonly costUsd: number | undefined
}

type SummaryAnswer = Omit<LlmAnswer, 'reasoning'>

type Attempt = { readonly text: string } | { readonly failure: string }

export async function summarise(task: SummaryTask, signal: AbortSignal): Promise<SummaryOutcome> {
  let usage = NO_USAGE
  let costUsd: number | undefined
  let { model } = task.llm
  let failure = 'the model was not asked'
  for (const request of task.requests) {
    try {
      const answer = await answerTo(request(), task, signal)
      usage = addUsage(usage, answer.usage)
      costUsd = addCost(costUsd, answer.costUsd)
      model = answer.model || model
      const attempt = read(answer, task.maxChars * TOLERANCE)
      if ('text' in attempt) return { text: attempt.text, model, usage, costUsd }
      failure = attempt.failure
    } catch (error) {
      if (!(error instanceof LlmError) || !ABOUT_CONTENT.has(error.type)) throw error
      failure = error.message
    }
  }
  return { failure, model, usage, costUsd }
}

/** Errors that another request may avoid. */
const ABOUT_CONTENT: ReadonlySet<string> = new Set(['context_window', 'content_filter'])

function read(answer: SummaryAnswer, maxChars: number): Attempt {
  const text = answer.text.trim()
  // A summary that was cut off at another limit is still useful.
  if (cutReasonOf(answer.stopReason) === 'content_filter') return { failure: 'a content filter ended the summary' }
  if (text !== '') return { text: text.length > maxChars ? `${text.slice(0, maxChars).toWellFormed()} […]` : text }
  return {
    failure:
      answer.toolCalls.length > 0
        ? 'the model called a tool instead of writing a summary'
        : 'the model wrote an empty summary',
  }
}

/** Ends the request as soon as the answer is too long. Its usage is then unknown, and estimated. */
async function answerTo(request: LlmRequest, task: SummaryTask, signal: AbortSignal): Promise<SummaryAnswer> {
  const { llm, maxChars, onRetry } = task
  const stream = llm.stream(request, signal)
  let text = ''
  let chars = 0
  try {
    for (;;) {
      const next = await stream.next()
      if (next.done) return next.value
      if (next.value.kind === 'retry') {
        signal.throwIfAborted()
        await onRetry(next.value)
        text = ''
        chars = 0
        continue
      }
      chars += next.value.text.length
      if (next.value.kind === 'text') text += next.value.text
      if (text.length > maxChars * TOLERANCE || chars > MAX_ANSWER_CHARS) return cutOff(request, task, text, chars)
    }
  } finally {
    await leaveAnswer(stream)
  }
}

function cutOff({ system, messages }: LlmRequest, task: SummaryTask, text: string, chars: number): SummaryAnswer {
  const { model } = task.llm
  const readTokens = messages.reduce((sum, message) => sum + tokensOfMessage(message), tokensOfText(system))
  const usage = { ...NO_USAGE, input_tokens: readTokens, output_tokens: Math.ceil(chars / 4) }
  return { text, toolCalls: [], usage, costUsd: task.costOf(usage), stopReason: 'length', model }
}
