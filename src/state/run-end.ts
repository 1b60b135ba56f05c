/** Decides what follows from the end of a run: ended by the loop, or interrupted by a crash or a failing disk. Pure. */
import { isUndecided } from './approval-intents.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { ErrorType, StopReason } from '../contract/events/status.ts'
import { endOfCurrentTask, endOfLostJobs } from './task-intents.ts'
import {
  answerCall,
  BEFORE_MESSAGE,
  inRun,
  interruptCalls,
  isWaiting,
  result,
  startForUnread,
  toStatus,
  waitsForUser,
} from './drafts.ts'
import { openAnswer } from './answered.ts'
import { isHandedOver, waitsForClient } from './client-result.ts'
import { CUT_OFF, endCutOff, hasResting, isLostWorkReason, type LostWorkReason, waitingOn } from './cut-off.ts'
import { waitOutside } from './waits.ts'
import { areInBackground, canWorkInBackground, findSubagent, rests } from './subagents.ts'
import { closeWithoutCall } from './request-drafts.ts'
import { STATUS_AFTER } from './run-state.ts'
import type { State } from './state.ts'

export type RunFailure = { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }

/** Why work may be unfinished in a log that was opened. */
export type RecoveryReason = LostWorkReason | 'log_failed'

/** The loop has ended; `requestedAt` is the log's head at its last model request, or 0 if there was none. */
export type EndRunIntent = {
  kind: 'end_run'
  runId: string
  stopReason: StopReason
  finalText?: string
  structuredOutput?: unknown
  failure?: RunFailure
  requestedAt: number
  begun: readonly string[]
  newRunId: string
  now: number
}

/** The log was opened after another process, or this one on a log failure, left it unfinished. */
export type RecoverIntent = { kind: 'recover'; why: RecoveryReason; newRunId: string; now: number }

/**
 * A run ends only here, after a check for unread messages: a message that asked for a run always gets an answer. An
 * empty result means that the run continues.
 */
export function decideEnd(state: State, intent: EndRunIntent): EventDraft[] {
  const { stopReason, failure, begun, now } = intent
  // The run may have called the model before it waited for a user: then only the log knows.
  const requestedAt = Math.max(intent.requestedAt, state.readThrough)
  const isUnread = Math.max(state.runRequestedAt, state.subagentEndedAt) > requestedAt
  if (isUnread && (stopReason === 'completed' || stopReason === 'finished')) return []

  const error: EventDraft[] = failure
    ? [
        {
          type: 'ErrorEvent',
          source: 'environment',
          ...inRun(state),
          error_type: failure.type,
          message: failure.message,
          retryable: failure.retryable,
        },
      ]
    : []
  // Each such message gets its own run if this run could not read it. Exclude the message that started this run: a run
  // that fails before its first request would restart itself forever.
  const readThrough = Math.max(requestedAt, state.run?.startSeq ?? 0)
  const another = startForUnread(state, STATUS_AFTER[stopReason], readThrough, intent.newRunId)
  return [
    ...error,
    ...givenUpAtEnd(state, stopReason, begun, another.length > 0),
    result(state, stopReason, now, { ...intent, waitsForUser: waitsForUser(state, readThrough) }),
    ...(state.tasks.length > 0 ? endOfCurrentTask(state, stopReason, intent.finalText) : []),
    toStatus(state, STATUS_AFTER[stopReason], stopReason),
    ...another,
  ]
}

const BEFORE_TIME_LIMIT = 'interrupted: the run reached its time limit before this call began; it did not run'

const BEFORE_HOOK = 'interrupted: a hook ended the run before this call began; it did not run'

/**
 * A time limit ends running calls, as a pause with `interrupt` does; after another end, `run` continues with the turn.
 */
function givenUpAtEnd(
  state: State,
  why: StopReason,
  begunCalls: readonly string[],
  startsAnother: boolean,
): EventDraft[] {
  if (why === 'time_limit') return interruptCalls(state, begunCalls, BEFORE_TIME_LIMIT)
  if (why === 'hook') return interruptCalls(state, begunCalls, BEFORE_HOOK)
  return startsAnother ? interruptCalls(state, begunCalls, BEFORE_MESSAGE) : []
}

/**
 * True if the next start of the server must open a conversation that does not work: to end calls, or to run again. What
 * waits for somebody waits without that.
 */
export function leavesWork(state: State): boolean {
  const { status, reason, openCalls, settings, subagents } = state
  const isCutOff = reason === 'server_closing' || (settings.resume_on_start === true && isLostWorkReason(reason))
  const hasCalls = openCalls.length > 0 && !isWaiting(status)
  const leavesSubagents = () => canWorkInBackground(state) || subagents.some((each) => !rests(state, each))
  return isCutOff || hasCalls || (subagents.length > 0 && leavesSubagents())
}

/** Ends the run as the loop would have; undefined if hooks or a schema have a say, which only a run can ask. */
export function endAnswered(state: State, now: number, hasHooks: boolean): EventDraft[] | undefined {
  const { status, run, settings } = state
  const isCertain = !hasHooks && !settings.output_schema && !run?.outputSchema && !areInBackground(state)
  const answer = status === 'running' && isCertain ? openAnswer(state) : undefined
  if (!answer) return undefined
  const { stopReason, text: finalText } = answer
  return [
    result(state, stopReason, now, { finalText }),
    ...endOfCurrentTask(state, stopReason, finalText),
    toStatus(state, STATUS_AFTER[stopReason], stopReason),
  ]
}

/**
 * Interrupted calls are reported as such and never re-run, because they may have had effects. A call that waits for a
 * decision, or was decided while paused, has had none and keeps waiting.
 */
export function decideRecover(state: State, intent: RecoverIntent): EventDraft[] {
  const { why, now } = intent
  const stopReason = why === 'log_failed' ? 'server_restart' : why
  const cutOff = endCutOff(state, stopReason)
  const endsOfLost = [...endOfLostJobs(state), ...closeWithoutCall(state, 'server_restart'), ...cutOff]
  if (isWaiting(state.status) || isUndecided(state) || hasResting(state) || isHeldBack(state)) {
    if (state.status !== 'running') return endsOfLost
    const waits = waitOutside(waitingOn(state))
    return [...endsOfLost, ...(waits.length > 0 ? waits : endOfCutRun(state, intent))]
  }
  const over = endAnswered(state, now, hasHooks(state))
  if (over) return [...endsOfLost, ...over]
  // Calls run one at a time, in order: of those without a result, only the first and those of subagents can have begun.
  const callAnswers = state.openCalls.flatMap((call, at) => {
    const message = at && !findSubagent(state, call.toolUseId) ? NOT_BEGUN_AT_STOP : CUT_OFF
    return answerCall(state, call, { type: 'interrupted', why: 'server_restart', message, stopReason })
  })
  if (state.status !== 'running') {
    const hasEnded = cutOff.some((draft) => draft.type === 'Result' && draft.background_agent_id !== undefined)
    const wasWorking = hasEnded && (state.status === 'idle' || state.status === 'finished')
    return [...endsOfLost, ...callAnswers, ...(wasWorking ? [toStatus(state, 'paused', why)] : [])]
  }
  return [...endsOfLost, ...callAnswers, ...endOfCutRun(state, intent)]
}

/** The run stays unfinished, and so do its calls that stay open. */
function endOfCutRun(state: State, { why, newRunId, now }: RecoverIntent): EventDraft[] {
  if (why !== 'log_failed') return [result(state, why, now), toStatus(state, 'paused', why)]
  const end = {
    runId: state.run?.id ?? '',
    stopReason: 'error',
    failure: LOG_FAILED,
    requestedAt: 0,
    begun: [],
  } as const
  return decideEnd({ ...state, openCalls: [] }, { kind: 'end_run', ...end, newRunId, now })
}

const hasHooks = ({ settings: { hooks, client_hooks = {} } }: State): boolean =>
  hooks !== undefined || Object.keys(client_hooks).length > 0

const NOT_BEGUN_AT_STOP = 'The server stopped before this call began; it did not run.'
const LOG_FAILED: RunFailure = {
  type: 'internal',
  message: 'The disk failed while the run was being stored. Look at what the agent did last, and run it again.',
  retryable: true,
}

/** True if the calls wait for an answer, or were decided or answered while paused, and none has run since. */
function isHeldBack(state: State): boolean {
  const { status, request, holdsCalls, openCalls } = state
  if (status === 'running') return waitsForClient(state)
  const isDecided = request !== undefined && !request.isReleased
  return holdsCalls || isDecided || openCalls.some((call) => isHandedOver(state, call))
}
