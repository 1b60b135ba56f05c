/** Asks the model for its next answer, with hooks around the request if there are any. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { Llm, LlmAnswer, ModelTool } from '../../llm/llm.ts'
import { systemOf } from '../../llm/request/request-parts.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import type { AgentContext, Output } from '../loop-context.ts'
import type { LoopHooks } from '../loop-hooks.ts'
import type { RequestAhead } from './request-ahead.ts'
import { NO_TOOLS, requestOf, toolsFor } from './request-ahead.ts'
import type { Turn } from './turn.ts'
import { takeTurn } from './turn.ts'

/** Throws what `takeTurn` throws. A model that turns out not to support tools is asked again without them. */
export async function requestAnswer(
  context: AgentContext,
  ahead: RequestAhead,
  output: Output,
  signal: AbortSignal,
): Promise<Turn> {
  const llm = context.llm()
  const { runId } = context
  const sendRequest = async (tools: readonly ModelTool[]) => {
    await context.sent?.settled()
    const hooks = context.hooks()
    if (hooks) {
      ahead.drop()
      return await requestWithHooks({ context, llm, hooks, tools }, output, signal)
    }
    const deps = { runId, readThrough: context.onRequest(), ...output }
    const request = requestOf(context, tools)
    return await takeTurn(ahead.take(llm, request) ?? llm.stream(request, signal), deps, signal)
  }
  try {
    return await sendRequest(toolsFor(context, llm))
  } catch (error) {
    if (!(error instanceof LlmError && error.lacksTools) || context.withoutTools.has(llm.model)) throw error
    context.withoutTools.add(llm.model)
    await output.emit([warnOfMissingTools(llm.model, runId)])
    return await sendRequest(NO_TOOLS)
  }
}

type HookedRequest = {
  readonly context: AgentContext
  readonly llm: Llm
  readonly hooks: LoopHooks
  readonly tools: readonly ModelTool[]
}

async function requestWithHooks({ context, llm, hooks, tools }: HookedRequest, output: Output, signal: AbortSignal) {
  const { history, runId, instructions } = context
  const upcoming = () => {
    const system = systemOf({ system: history.system, instructions })
    return { system, messages: history.upcoming() }
  }
  // Rewritten messages do not have what is stored from here on.
  const readBefore = context.onRequest()
  const rewrittenMessages = await hooks.beforeModel(llm.model, upcoming, signal)
  if (!rewrittenMessages) await context.sent?.settled()
  const readThrough = rewrittenMessages ? readBefore : context.onRequest()
  const onAnswer = (answer: LlmAnswer) => hooks.afterModel(answer, signal)
  const isJudged = () => hooks.judgesAnswers()
  const request = requestOf(context, tools, rewrittenMessages)
  return await takeTurn(llm.stream(request, signal), { runId, readThrough, ...output, onAnswer, isJudged }, signal)
}

function warnOfMissingTools(model: string, run_id: string): EventDraft {
  const message = `${model} does not support tools at this endpoint; the agent continues without them and can only write messages.`
  return { type: 'ErrorEvent', source: 'environment', run_id, error_type: 'config', message, retryable: false }
}
