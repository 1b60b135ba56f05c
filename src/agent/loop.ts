/**
 * The agent loop: call the model, run its tool calls, and repeat until the model has finished or a limit is reached.
 */
import type { AskedToolUse } from '../contract/values/permission.ts'
import { endIfValid, endWithOutput, requestOutput } from './output/final-output.ts'
import { cutReasonOf } from '../contract/finish-reason.ts'
import { LlmError } from '../llm/errors/llm-error.ts'
import type { AgentContext, LeftAnswer, Output } from './loop-context.ts'
import type { LoopEnd, LoopWait } from './loop-end.ts'
import type { LoopHooks } from './loop-hooks.ts'
import { CUT_OFF, metLimit, unpricedLimit } from './model/loop-ends.ts'
import type { FinishedCall } from './tool-calls.ts'
import type { ToolCall } from '../state/tool-call.ts'
import type { ResultDraft } from './history/tool-messages.ts'
import { requestAnswer } from './model/request-answer.ts'
import { RequestAhead } from './model/request-ahead.ts'
import type { Turn } from './model/turn.ts'

/**
 * Runs until nothing is left to do, and returns why it stopped; undefined if another process continues. The signal stops it
 * immediately: the model call is aborted, a running tool continues by itself, and the loop emits nothing more. Throws only if
 * an event could not be stored.
 */
export async function runAgent(
  context: AgentContext,
  output: Output,
  signal: AbortSignal,
): Promise<LoopEnd | LoopWait | undefined> {
  using ahead = new RequestAhead(context, signal)
  if (await context.hooks()?.begin(signal)) return ENDED_BY_HOOK
  const leftAnswer = context.leftAnswer()
  const over = leftAnswer && (await endWithAnswer(context, leftAnswer, signal))
  if (over) return over
  for (;;) {
    const ran = await runOpenCalls(context, ahead, signal)
    if (!ran) return signal.aborted ? { stopReason: 'paused' } : undefined
    if (!('finishes' in ran)) return ran
    if (await context.hooks()?.afterCalls(signal)) return ENDED_BY_HOOK
    const unpricedEnd = unpricedLimit(context)
    if (unpricedEnd) return unpricedEnd
    if (ran.finishes) {
      if (await mustContinue(context, signal)) continue
      const end = await finish(context, { stopReason: 'finished', finalText: ran.finalText }, ran.finalText, output)
      if (end) return end
    }
    const limit = metLimit(context)
    if (limit) return limit
    if (context.leaving?.aborted) return undefined

    try {
      context.snapshots?.ahead()
      await context.sent?.settled()
      if (context.output) await requestOutput(context.output, output.emit)
      const spentEnd = await makeRoom(context, ahead, signal)
      if (spentEnd) return spentEnd
      const turn = await requestWithRoom(context, ahead, output, signal)
      if (turn.hasCalls || turn.isPaused || unpricedLimit(context)) continue
      const cutReason = cutReasonOf(turn.stopReason)
      if (cutReason) return CUT_OFF[cutReason]
      if (await mustContinue(context, signal)) continue
      const end = await finish(context, { stopReason: 'completed' }, turn.text, output)
      if (end) return end
    } catch (error) {
      if (signal.aborted) return { stopReason: 'paused' }
      if (!(error instanceof LlmError)) throw error
      await context.hooks()?.afterFailure(error, signal)
      const { type, message, retryable } = error
      return { stopReason: 'error', failure: { type, message, retryable } }
    }
  }
}

/** Returns undefined if the agent continues. */
async function endWithAnswer(context: AgentContext, leftAnswer: LeftAnswer, signal: AbortSignal) {
  if (await mustContinue(context, signal)) return undefined
  const end: LoopEnd = { stopReason: leftAnswer.stopReason, finalText: leftAnswer.text }
  return context.output ? await endIfValid(context.output, end, leftAnswer.text) : end
}

/** Returns undefined if the loop continues, because the output is not valid. */
async function finish(
  { output: wantedOutput }: AgentContext,
  end: LoopEnd,
  text: string,
  output: Output,
): Promise<LoopEnd | undefined> {
  return wantedOutput ? await endWithOutput(wantedOutput, end, text, output.emit) : end
}

/**
 * Runs the calls in the order of the turn, one at a time; consecutive read-only calls run in parallel. Returns undefined if the
 * signal was aborted in between, or another process runs the rest.
 */
async function runOpenCalls(
  context: AgentContext,
  ahead: RequestAhead,
  signal: AbortSignal,
): Promise<FinishedCall | LoopWait | LoopEnd | undefined> {
  const { toolCalls } = context
  const preparation = context.openCalls().length > 0 ? context.snapshots?.prepare() : undefined
  if (preparation) await preparation
  const storing = (result: ResultDraft) => ahead.begin(result)
  let last: FinishedCall = { finishes: false }
  while (context.openCalls().length) {
    const hooks = context.hooks()
    if (hooks && (await hooks.beforeCalls(signal))) return ENDED_BY_HOOK
    await context.decideCalls(nextCalls(context), signal)
    if (context.hooks() !== hooks || hooks?.areCurrent() === false) continue
    const calls = nextCalls(context)
    if (calls.length === 0) break
    if (signal.aborted) return undefined
    // There is no `await` between this check and the start of the calls: a stored change of the rules applies to them.
    const haveBegun = calls.some((call) => toolCalls.hasBegun(call.toolUseId))
    if (context.leaving?.aborted && !haveBegun) return undefined
    const gatedTurn = haveBegun ? undefined : context.gate(calls)
    if (!gatedTurn && !haveBegun) continue
    if (gatedTurn?.permissionCalls.length) return await awaitPermission(gatedTurn.permissionCalls, hooks, signal)
    const questionCalls = gatedTurn && toolCalls.questionsIn(context.openCalls(), gatedTurn.denials)
    if (questionCalls?.length) return { questionCalls }
    // The snapshot is made once nothing is asked any more: what people change until then is theirs. Then the rules are
    // looked at again.
    const snapshot = haveBegun ? undefined : context.snapshots?.before(calls)
    if (snapshot) {
      await snapshot
      continue
    }
    const running = toolCalls.runInParallel(calls, gatedTurn?.denials, last.finishes ? undefined : storing)
    const finishedCall: FinishedCall | undefined = await orAborted(running, signal)
    if (!finishedCall) return undefined
    if (finishedCall.finishes) last = finishedCall
    if (hooks?.takeEnd()) return ENDED_BY_HOOK
    if (context.waitsOutside()) return signal.aborted ? undefined : { waitsOutside: true }
  }
  return last
}

const ENDED_BY_HOOK: LoopEnd = { stopReason: 'hook' }

async function awaitPermission(
  permissionCalls: readonly AskedToolUse[],
  hooks: LoopHooks | undefined,
  signal: AbortSignal,
): Promise<LoopWait | LoopEnd> {
  const hookDecisions = await hooks?.approve(permissionCalls, signal)
  if (hookDecisions === 'end') return ENDED_BY_HOOK
  return { permissionCalls, ...(hookDecisions && { hooked: hookDecisions }) }
}

/** True if a hook has the agent continue instead of ending the run. */
async function mustContinue(context: AgentContext, signal: AbortSignal): Promise<boolean> {
  return (await context.hooks()?.beforeStop(signal)) ?? false
}

/** Read-only calls of one turn that run in parallel. */
const MAX_PARALLEL = 8

/**
 * Calls that a pause left running end before another one begins. A call that is not read-only runs alone, except that the
 * calls of subagents run in parallel.
 */
function nextCalls({ openCalls, toolCalls }: AgentContext): readonly ToolCall[] {
  const open = openCalls()
  const begunCalls = open.filter((call) => toolCalls.hasBegun(call.toolUseId))
  if (begunCalls.length > 0) return begunCalls
  if (open[0] && toolCalls.callsSubagent(open[0].name)) {
    const end = open.findIndex(({ name }) => !toolCalls.callsSubagent(name))
    return end < 0 ? open : open.slice(0, end)
  }
  const firstToWrite = open.findIndex(({ name }) => !toolCalls.isReadOnly(name))
  const readers = firstToWrite < 0 ? open.length : firstToWrite
  return open.slice(0, Math.min(Math.max(readers, 1), MAX_PARALLEL))
}

/** Compacts when the context is nearly full. Returns the limit that the run has reached with the summary. */
async function makeRoom(context: AgentContext, ahead: RequestAhead, signal: AbortSignal): Promise<LoopEnd | undefined> {
  const { compactor } = context
  if (!compactor.isDue()) return undefined
  ahead.drop()
  return (await compactor.compact('threshold', signal)) ? metLimit(context) : undefined
}

/** Compacts once after the model has refused the context as too long. */
async function requestWithRoom(
  context: AgentContext,
  ahead: RequestAhead,
  output: Output,
  signal: AbortSignal,
): Promise<Turn> {
  const { compactor } = context
  try {
    const turn = await requestAnswer(context, ahead, output, signal)
    const isCutOff = !turn.hasCalls && cutReasonOf(turn.stopReason) === 'context_window'
    if (!isCutOff || !(await compactor.compact('context_window', signal))) return turn
  } catch (error) {
    if (!isTooLong(error)) throw error
    if (!(await compactor.compact('context_window', signal))) throw withAdvice(error)
  }
  try {
    return await requestAnswer(context, ahead, output, signal)
  } catch (error) {
    throw isTooLong(error) ? withAdvice(error) : error
  }
}

const isTooLong = (error: unknown): error is LlmError => error instanceof LlmError && error.type === 'context_window'

function withAdvice(error: LlmError): LlmError {
  const message = `${error.message} Compaction could not make it short enough: send shorter messages, offer fewer tools, use a model with a larger window, or begin a new conversation.`
  return new LlmError('context_window', message, { cause: error })
}

/** Returns undefined if the signal is aborted first; the promise then continues, and the next run awaits it. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: abortion, resolve } = Promise.withResolvers<undefined>()
  const onAbort = () => resolve(undefined)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, abortion])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
