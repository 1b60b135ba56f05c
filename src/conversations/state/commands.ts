/** What a command may do in which state: pure `(state, command) -> events`, or a `Problem` saying why not. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { ErrorType, StopReason } from '../../contract/events/status.ts'
import { EVENT_VERSION } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/message.ts'
import { Problem } from '../../contract/problem.ts'
import type { AskCommand, DecideCommand, RejectCommand } from '../approvals/approval-commands.ts'
import { decideAsk, decidePermission, decideReject, isUndecided, supersede } from '../approvals/approval-commands.ts'
import { undecidedCalls } from '../approvals/approvals.ts'
import {
  answer,
  BEFORE_MESSAGE,
  inRun,
  interruptCalls,
  isWaiting,
  keyOf,
  result,
  start,
  startForUnread,
  toStatus,
} from './drafts.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { denyLeftRequests } from './network-requests.ts'
import type { State } from './state.ts'
import { STATUS_AFTER } from './state.ts'
import type {
  CancelTaskCommand,
  EndTaskCommand,
  PostTaskCommand,
  StartTaskCommand,
  TickTaskCommand,
} from '../tasks/task-commands.ts'
import {
  decideCancelTask,
  decideEndTask,
  decidePostTask,
  decideStartTask,
  decideTickTask,
  endOfCurrentTask,
  endOfLostJobs,
} from '../tasks/task-commands.ts'

export type RunFailure = { readonly type: ErrorType; readonly message: string; readonly retryable: boolean }

/** Why something may be half done in a log that was opened. */
export type RecoveryReason = 'server_restart' | 'log_failed'

/**
 * `newRunId` is the id a run gets should the command start one. `begun` are the ids of the open calls whose result comes
 * from their tool: they run, or have run. `now` is milliseconds since 1970.
 */
export type Command =
  | {
      kind: 'message'
      content: readonly UserPart[]
      sender?: string
      run: boolean
      begun: readonly string[]
      newRunId: string
      now: number
      idempotency?: Idempotency
    }
  | { kind: 'run'; newRunId: string; maxSteps?: number }
  /** `interrupt`: what had begun was told to end, and what has not begun is given up. */
  | { kind: 'pause'; reason: string; interrupt: boolean; begun: readonly string[]; now: number }
  | { kind: 'configure'; changes: Record<string, unknown> }
  /** Names only; the values are stored already. */
  | { kind: 'secrets'; added: readonly string[]; removed: readonly string[] }
  /** The loop has come to an end; `requestedAt` is the log's head at its last model request, 0 when there was none. */
  | {
      kind: 'end_run'
      runId: string
      stopReason: StopReason
      finalText?: string
      failure?: RunFailure
      requestedAt: number
      begun: readonly string[]
      newRunId: string
      now: number
    }
  | AskCommand
  | DecideCommand
  | RejectCommand
  | PostTaskCommand
  | StartTaskCommand
  | TickTaskCommand
  | EndTaskCommand
  | CancelTaskCommand
  | { kind: 'client_event'; name: string; data?: unknown; idempotency?: Idempotency }
  /** The log was opened, as another process left it, or this one when it failed. */
  | { kind: 'recover'; why: RecoveryReason; newRunId: string; now: number }

/** The events that carry out the command, to be appended as one batch; none where there is nothing to do. */
export function decide(state: State, command: Command): EventDraft[] | Problem {
  switch (command.kind) {
    case 'message':
      return refuseNewer(state) ?? decideMessage(state, command)
    case 'run':
      return refuseNewer(state) ?? decideRun(state, command)
    case 'pause':
      return decidePause(state, command)
    case 'configure':
      return decideConfigure(state, command.changes)
    case 'secrets':
      return decideSecrets(command)
    case 'end_run':
      return decideEnd(state, command)
    case 'ask':
      return decideAsk(state, command)
    case 'decide':
      return refuseNewer(state) ?? decidePermission(state, command)
    case 'reject':
      return decideReject(state, command)
    case 'post_task':
      return refuseNewer(state) ?? decidePostTask(state, command)
    case 'start_task':
      return decideStartTask(state, command)
    case 'tick_task':
      return decideTickTask(state, command)
    case 'end_task':
      return decideEndTask(state, command)
    case 'cancel_task':
      return decideCancelTask(state, command)
    case 'client_event':
      return decideClientEvent(command)
    case 'recover':
      return decideRecover(state, command)
    default:
      return command satisfies never
  }
}

type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>

function decideMessage(state: State, command: CommandOf<'message'>): EventDraft[] {
  const { content, sender, run, begun, newRunId, now, idempotency } = command
  const message: EventDraft = {
    type: 'UserMessage',
    source: 'user',
    content: [...content],
    run,
    ...(run && { run_id: state.status === 'running' && state.run ? state.run.id : newRunId }),
    ...(sender !== undefined && { sender }),
    ...keyOf(idempotency),
  }
  if (state.status === 'running') return [message]
  if (isWaiting(state.status)) {
    const ended = [...supersede(state), result(state, 'superseded', now)]
    // With a run that follows, the message only steers the task that the agent is at.
    if (run) return [...ended, message, start(state, newRunId, 'message')]
    const atRest = [...endOfCurrentTask(state, 'superseded'), message, toStatus(state, 'idle', 'superseded')]
    return [...ended, ...atRest, ...startForUnread(state, 'idle', state.readThrough, newRunId)]
  }
  // The model reads the message before anything else happens: it may well say that the rest of the turn must not run.
  const told = [...interruptCalls(state, begun, BEFORE_MESSAGE), message]
  return run ? [...told, start(state, newRunId, 'message')] : told
}

function decideRun(state: State, { newRunId, maxSteps }: CommandOf<'run'>): EventDraft[] | Problem {
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
      return [
        {
          ...start(state, newRunId, 'run', maxSteps),
          ...(isUndecided(state) && { status: 'waiting_for_confirmation' }),
        },
      ]
    default:
      return state.status satisfies never
  }
}

const BEFORE_PAUSE = 'interrupted: the run was paused before this call began; it did not run'

/** Pausing what does not run is no error; it changes nothing but that `interrupt` gives up what an earlier pause has kept. */
function decidePause(state: State, { reason, interrupt, begun, now }: CommandOf<'pause'>): EventDraft[] {
  const interrupted = interrupt ? interruptCalls(state, begun, BEFORE_PAUSE) : []
  if (state.status !== 'running' && !isWaiting(state.status)) return interrupted
  return [...interrupted, result(state, 'paused', now), toStatus(state, 'paused', reason)]
}

function decideConfigure(state: State, changes: Record<string, unknown>): EventDraft[] | Problem {
  if ('workdir' in changes && (state.status === 'running' || state.openCalls.length > 0)) {
    return new Problem(
      'conversation_running',
      'The workdir can only be changed while the agent is not running; pause it first.',
    )
  }
  if (changesNetworkMode(state, changes) && (state.status === 'running' || state.openCalls.length > 0)) {
    return new Problem(
      'conversation_running',
      'The mode of the network can only be changed while the agent is not running; pause it first.',
    )
  }
  return Object.keys(changes).length ? [{ type: 'ConfigUpdate', source: 'user', changes }] : []
}

/** Shells are in the network that they were started in: they end with such a change. */
export function changesNetworkMode({ settings }: State, { network }: Record<string, unknown>): boolean {
  // As it was checked when it came.
  return network !== undefined && (network as { mode?: unknown }).mode !== settings.network?.mode
}

function decideSecrets({ added, removed }: CommandOf<'secrets'>): EventDraft[] {
  if (added.length + removed.length === 0) return []
  return [{ type: 'SecretsUpdate', source: 'user', added: [...added], removed: [...removed] }]
}

function decideClientEvent({ name, data, idempotency }: CommandOf<'client_event'>): EventDraft[] {
  return [{ type: 'ClientEvent', source: 'user', name, ...(data !== undefined && { data }), ...keyOf(idempotency) }]
}

/**
 * A run ends only here, after a look for messages it has not read: a message that asked for a run is never stranded.
 * No events mean that the run is to go on.
 */
function decideEnd(state: State, command: CommandOf<'end_run'>): EventDraft[] {
  const { stopReason, failure, begun, now } = command
  // The run may have asked the model before it waited for somebody: then only the log knows.
  const requestedAt = Math.max(command.requestedAt, state.readThrough)
  const isUnread = state.runRequestedAt > requestedAt
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
  // Each such message asked for a run of its own when this one could not take it in. But not the one this run was
  // started for: a run that fails before its first request would start itself again for ever.
  const readThrough = Math.max(requestedAt, state.run?.startSeq ?? 0)
  const another = startForUnread(state, STATUS_AFTER[stopReason], readThrough, command.newRunId)
  return [
    ...error,
    ...givenUpAtEnd(state, stopReason, begun, another.length > 0),
    result(state, stopReason, now, command.finalText),
    ...endOfCurrentTask(state, stopReason, command.finalText),
    toStatus(state, STATUS_AFTER[stopReason], stopReason),
    ...another,
  ]
}

const BEFORE_TIME_LIMIT = 'interrupted: the run reached its time limit before this call began; it did not run'

/** Time that has run out ends what runs, as a pause with `interrupt` does; after another end `run` goes on with the turn. */
function givenUpAtEnd(state: State, why: StopReason, begun: readonly string[], startsAnother: boolean): EventDraft[] {
  if (why === 'time_limit') return interruptCalls(state, begun, BEFORE_TIME_LIMIT)
  return startsAnother ? interruptCalls(state, begun, BEFORE_MESSAGE) : []
}

/**
 * What another process left half done is answered, not repeated: it may have had its effects already. A call that
 * waits for a decision has had none, and goes on waiting; nor has one that was decided while paused.
 */
function decideRecover(state: State, { why, newRunId, now }: CommandOf<'recover'>): EventDraft[] {
  const lost = [...endOfLostJobs(state), ...denyLeftRequests(state.networkRequests)]
  if (isWaiting(state.status) || isUndecided(state) || isHeldBack(state)) return lost
  // Calls run one after the other, in their order: of those without a result, none but the first can have begun.
  const answered = state.openCalls.map((call, at) => answer(call, 'interrupted', at ? NOT_BEGUN_AT_STOP : CUT_OFF))
  if (state.status !== 'running') return [...lost, ...answered]
  if (why === 'log_failed') {
    const end = {
      runId: state.run?.id ?? '',
      stopReason: 'error',
      failure: LOG_FAILED,
      requestedAt: 0,
      begun: [],
    } as const
    return [...lost, ...answered, ...decideEnd({ ...state, openCalls: [] }, { kind: 'end_run', ...end, newRunId, now })]
  }
  return [...lost, ...answered, result(state, 'server_restart', now), toStatus(state, 'paused', 'server_restart')]
}

const CUT_OFF =
  'The server stopped before this call had ended; whether it began, and what it did until then, is not known.'
const NOT_BEGUN_AT_STOP = 'The server stopped before this call began; it did not run.'
const LOG_FAILED: RunFailure = {
  type: 'internal',
  message: 'The disk failed while the run was being stored. Look at what the agent did last, and run it again.',
  retryable: true,
}

/** Decided while paused, and nothing of it has run since. */
const isHeldBack = ({ status, request }: State) => status !== 'running' && request !== undefined && !request.isReleased

function refuseNewer(state: State): Problem | undefined {
  if (state.version <= EVENT_VERSION) return undefined
  return new Problem(
    'conversation_from_newer_version',
    'A newer version of the server wrote this conversation; it can be read here, but not run.',
  )
}
