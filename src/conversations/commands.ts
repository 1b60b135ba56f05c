/** What a command may do in which state: pure `(state, command) -> events`, or a `Problem` saying why not. */
import type { ToolCall } from '../agent/tool-calls.ts'
import type { ErrorType, EventDraft, Status, StopReason, ToolErrorType } from '../contract/event.ts'
import { EVENT_VERSION } from '../contract/event.ts'
import type { UserPart } from '../contract/message.ts'
import type { AskedToolUse, Decision, ToolDecision } from '../contract/permission.ts'
import { Problem } from '../contract/problem.ts'
import { decideCalls, undecidedCalls } from './approvals.ts'
import type { Idempotency } from './idempotency.ts'
import type { State } from './state.ts'
import { STATUS_AFTER } from './state.ts'

export type RunFailure = { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }

/** `newRunId` is the id a run gets should the command start one. `now` is milliseconds since 1970. */
export type Command =
  | {
      kind: 'message'
      content: readonly UserPart[]
      sender?: string
      run: boolean
      newRunId: string
      now: number
      idempotency?: Idempotency
    }
  | { kind: 'run'; newRunId: string }
  | { kind: 'pause'; reason: string; now: number }
  | { kind: 'configure'; changes: Record<string, unknown> }
  /** The loop has come to an end; `requestedAt` is the log's head at its last model request, 0 when there was none. */
  | {
      kind: 'end_run'
      runId: string
      stopReason: StopReason
      failure?: RunFailure
      requestedAt: number
      newRunId: string
      now: number
    }
  /** The loop has come to calls that need a decision, and is still. */
  | { kind: 'ask'; runId: string; requestId: string; toolUses: readonly AskedToolUse[] }
  | { kind: 'decide'; requestId: string; decisions: readonly ToolDecision[] }
  | { kind: 'reject'; reason: string; now: number }
  /** The server starts and finds the log as another process left it. */
  | { kind: 'recover'; now: number }

/** The events that carry out the command, to be appended as one batch; none where there is nothing to do. */
export function decide(state: State, command: Command): EventDraft[] | Problem {
  switch (command.kind) {
    case 'message':
      return refuseNewer(state) ?? decideMessage(state, command)
    case 'run':
      return refuseNewer(state) ?? decideRun(state, command.newRunId)
    case 'pause':
      return decidePause(state, command)
    case 'configure':
      return decideConfigure(state, command.changes)
    case 'end_run':
      return decideEnd(state, command)
    case 'ask':
      return decideAsk(state, command)
    case 'decide':
      return refuseNewer(state) ?? decidePermission(state, command)
    case 'reject':
      return decideReject(state, command)
    case 'recover':
      return decideRecover(state, command.now)
    default:
      return command satisfies never
  }
}

type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>

function decideMessage(state: State, command: CommandOf<'message'>): EventDraft[] {
  const { content, sender, run, newRunId, now, idempotency } = command
  const message: EventDraft = {
    type: 'UserMessage',
    source: 'user',
    content: [...content],
    run,
    ...(run && { run_id: state.status === 'running' && state.run ? state.run.id : newRunId }),
    ...(sender !== undefined && { sender }),
    ...(idempotency && { idempotency_key: idempotency.key, body_hash: idempotency.bodyHash }),
  }
  if (state.status === 'running') return [message]
  if (isWaiting(state.status)) {
    const ended = [...supersede(state), result(state, 'superseded', now)]
    return [...ended, message, run ? start(state, newRunId, 'message') : toStatus(state, 'idle', 'superseded')]
  }
  // Paused while it waited: words in the place of a decision are none.
  if (isUndecided(state)) return [...supersede(state), message, ...(run ? [start(state, newRunId, 'message')] : [])]
  return run ? [message, start(state, newRunId, 'message')] : [message]
}

function decideRun(state: State, newRunId: string): EventDraft[] | Problem {
  switch (state.status) {
    case 'running':
      return new Problem('already_running', 'The agent is running already; follow it, or pause it first.', {
        details: { run_id: state.run?.id },
      })
    case 'waiting_for_confirmation':
      return new Problem('waiting_for_confirmation', 'Tool calls wait for a decision; running is not an approval.', {
        details: {
          request_id: state.request?.id,
          pending: undecidedCalls(state.request).map((call) => ({ tool_use_id: call.toolUseId, name: call.name })),
        },
      })
    case 'waiting_for_input':
      return new Problem('waiting_for_input', 'The agent has asked a question; answer it, or send a message.')
    case 'idle':
    case 'paused':
    case 'finished':
    case 'error':
    case 'cancelled':
      // Paused while it waited: it waits again, for running is not an approval.
      return isUndecided(state)
        ? [{ ...start(state, newRunId, 'run'), status: 'waiting_for_confirmation' } as EventDraft]
        : [start(state, newRunId, 'run')]
    default:
      return state.status satisfies never
  }
}

/** Pausing what does not run changes nothing and is no error. */
function decidePause(state: State, { reason, now }: CommandOf<'pause'>): EventDraft[] {
  if (state.status === 'running') return [result(state, 'paused', now), toStatus(state, 'paused', reason)]
  if (isWaiting(state.status)) return [result(state, 'paused', now), toStatus(state, 'paused', reason)]
  return []
}

/** All calls of a turn are decided before any of them runs. */
function decideAsk(state: State, { runId, requestId, toolUses }: CommandOf<'ask'>): EventDraft[] {
  if (state.status !== 'running' || state.run?.id !== runId) return []
  const request: EventDraft = {
    type: 'PermissionRequest',
    source: 'environment',
    run_id: runId,
    request_id: requestId,
    tool_uses: [...toolUses],
  }
  return [request, toStatus(state, 'waiting_for_confirmation', 'permission_request')]
}

/** For the request that is open; the run goes on with the last decision, also when all of them are denials. */
function decidePermission(state: State, { requestId, decisions }: CommandOf<'decide'>): EventDraft[] | Problem {
  const { request } = state
  if (request?.id !== requestId) return nothingPending()
  const made = decideCalls(request, decisions, state.run?.id)
  if (made instanceof Problem) return made
  const isLast = undecidedCalls(request).length === made.length
  if (!isLast || !made.length) return made
  const messages = new Map(request.calls.map((call) => [call.toolUseId, call.decision]))
  for (const draft of made) if (draft.type === 'PermissionDecision') messages.set(draft.tool_use_id, draft as Decision)
  const denied = state.openCalls
    .filter((call) => messages.get(call.toolUseId)?.behavior === 'deny')
    .map((call) => answer(call, 'denied', tellDenial(messages.get(call.toolUseId)?.message)))
  const goesOn = state.status === 'waiting_for_confirmation' ? [toStatus(state, 'running', 'decided')] : []
  return [...made, ...denied, ...goesOn]
}

/** Every open call of the turn, also one that was allowed beside those that waited: the turn as a whole is refused. */
function decideReject(state: State, { reason, now }: CommandOf<'reject'>): EventDraft[] | Problem {
  if (!isUndecided(state)) return nothingPending()
  const rejected = [...denials(state, 'user', reason), ...answerOpenCalls(state, 'rejected', tellDenial(reason))]
  if (!isWaiting(state.status)) return rejected
  return [...rejected, result(state, 'rejected', now), toStatus(state, 'idle', 'rejected')]
}

const SUPERSEDED = 'superseded: the user wrote a message instead of deciding'

const supersede = (state: State): EventDraft[] => [
  ...denials(state, 'superseded', SUPERSEDED),
  ...answerOpenCalls(state, 'rejected', SUPERSEDED),
]

function denials(state: State, decided_by: 'user' | 'superseded', message: string): EventDraft[] {
  return undecidedCalls(state.request).map((call) => ({
    type: 'PermissionDecision',
    source: decided_by === 'user' ? 'user' : 'environment',
    ...inRun(state),
    request_id: state.request!.id,
    tool_use_id: call.toolUseId,
    input_hash: call.inputHash,
    behavior: 'deny',
    message,
    decided_by,
  }))
}

const tellDenial = (message: string | undefined) => `The user did not allow this call${message ? `: ${message}` : '.'}`

const isUndecided = (state: State) => undecidedCalls(state.request).length > 0

const nothingPending = () =>
  new Problem('nothing_pending', 'Nothing waits for a decision; GET permissions shows what does.')

function decideConfigure(state: State, changes: Record<string, unknown>): EventDraft[] | Problem {
  if ('workdir' in changes && (state.status === 'running' || state.openCalls.length > 0)) {
    return new Problem(
      'conversation_running',
      'The workdir can only be changed while the agent is not running; pause it first.',
    )
  }
  return Object.keys(changes).length ? [{ type: 'ConfigUpdate', source: 'user', changes }] : []
}

/**
 * A run ends only here, after a look for messages it has not read: a message that asked for a run is never stranded.
 * No events mean that the run is to go on.
 */
function decideEnd(state: State, command: CommandOf<'end_run'>): EventDraft[] {
  const { stopReason, failure, now } = command
  const hasUnread = (since: number) => state.runRequestedAt > since
  if (hasUnread(command.requestedAt) && (stopReason === 'completed' || stopReason === 'finished')) return []

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
  const ended = [...error, result(state, stopReason, now), toStatus(state, STATUS_AFTER[stopReason], stopReason)]
  // Each such message asked for a run of its own when this one could not take it in. But not the one this run was
  // started for: a run that fails before its first request would start itself again for ever.
  const startsAnother = hasUnread(Math.max(command.requestedAt, state.run?.startSeq ?? 0))
  return startsAnother
    ? [...ended, start({ ...state, status: STATUS_AFTER[stopReason] }, command.newRunId, 'message')]
    : ended
}

/**
 * What another process left half done is answered, not repeated: it may have had its effects already. A call that
 * waits for a decision has had none, and goes on waiting.
 */
function decideRecover(state: State, now: number): EventDraft[] {
  if (isWaiting(state.status) || isUndecided(state)) return []
  const answered = answerOpenCalls(
    state,
    'interrupted',
    'The server stopped while this call ran; what it did until then is not known.',
  )
  if (state.status !== 'running') return answered
  return [...answered, result(state, 'server_restart', now), toStatus(state, 'paused', 'server_restart')]
}

function refuseNewer(state: State): Problem | undefined {
  if (state.version <= EVENT_VERSION) return undefined
  return new Problem(
    'conversation_from_newer_version',
    'A newer version of the server wrote this conversation; it can be read here, but not run.',
  )
}

const isWaiting = (status: Status) => status === 'waiting_for_confirmation' || status === 'waiting_for_input'

const inRun = (state: State) => (state.run ? { run_id: state.run.id } : {})

function start(state: State, runId: string, reason: string): EventDraft {
  return {
    type: 'StatusUpdate',
    source: 'environment',
    run_id: runId,
    status: 'running',
    previous_status: state.status,
    reason,
  }
}

function toStatus(state: State, status: Status, reason: string): EventDraft {
  return { type: 'StatusUpdate', source: 'environment', ...inRun(state), status, previous_status: state.status, reason }
}

function answerOpenCalls(state: State, type: ToolErrorType, message: string): EventDraft[] {
  return state.openCalls.map((call) => answer(call, type, message))
}

function answer(call: ToolCall, error_type: ToolErrorType, message: string): EventDraft {
  return {
    type: 'ToolResult',
    source: 'environment',
    ...(call.runId !== undefined && { run_id: call.runId }),
    tool_use_id: call.toolUseId,
    output: message,
    is_error: true,
    error_type,
    error_message: message,
    duration_ms: 0,
  }
}

function result(state: State, stopReason: StopReason, now: number): EventDraft {
  const run = state.run
  return {
    type: 'Result',
    source: 'environment',
    ...inRun(state),
    final_text: run?.finalText ?? '',
    usage: run?.usage ?? {},
    ...(run?.costUsd !== undefined && { cost_usd: run.costUsd }),
    stop_reason: stopReason,
    steps: run?.steps ?? 0,
    duration_ms: run ? Math.max(0, now - Date.parse(run.startedAt)) : 0,
    session_id: state.id,
  }
}
