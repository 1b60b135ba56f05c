/**
 * Decides what is allowed in which state: pure `(state, intent) -> events`, or a `Problem` that says why not. An intent
 * is a request of a client, the agent or a restart to change a conversation.
 */
import type { EventDraft } from '../contract/events/event.ts'
import type { UserPart } from '../contract/values/message.ts'
import { Problem } from '../contract/problem.ts'
import { type AnswerHeldIntent, decideAnswerHeld, decideExpire, type ExpireIntent } from './held-intents.ts'
import { type AwaitOutsideIntent, decideAwaitOutside, statusOfWait } from './waits.ts'
import { decideHandOver, type HandOverIntent } from './hand-over.ts'
import { clientCallsOf } from './open-requests.ts'
import { type RequestIntent, openRequest, type DecideIntent, decidePermission, supersede } from './approval-intents.ts'
import { decideReject, type RejectIntent } from './reject-intent.ts'
import { undecidedCalls } from './open-permission.ts'
import type { AnswerIntent, RequestAnswersIntent } from './question-intents.ts'
import { decideAnswer, decideQuestions, refuseRunDuringQuestions, UNANSWERED } from './question-intents.ts'
import type { RequestedRun } from './drafts.ts'
import {
  BEFORE_MESSAGE,
  endBackground,
  beforePause,
  interruptCalls,
  isWaiting,
  keyOf,
  marksOf,
  result,
  start,
  startForUnread,
  toStatus,
} from './drafts.ts'
import type { PromptHooks } from './hook-decisions.ts'
import type { Idempotency, StoredOnce } from './idempotency.ts'
import { decideEnd, decideRecover, endAnswered, type EndRunIntent, type RecoverIntent } from './run-end.ts'
import type { EndBackgroundIntent, StartSubagentIntent } from './subagent-intents.ts'
import { decideEndBackground, decideStartSubagent } from './subagent-intents.ts'
import { decideWithdraw, type WithdrawIntent } from './withdraw-intent.ts'
import { decideRewind, type RewindIntent } from './rewind-intent.ts'
import { alreadyRunning, refuseNewer, refuseSecond } from './refusals.ts'
import { afterMessage, readsMessages } from './run-overrides.ts'
import type { State } from './state.ts'
import { areInBackground, openPermissions } from './subagents.ts'
import {
  type CancelTaskIntent,
  type EndTaskIntent,
  type PostTaskIntent,
  type StartTaskIntent,
  type TickTaskIntent,
  decideCancelTask,
  decideEndTask,
  decidePostTask,
  decideStartTask,
  decideTickTask,
  endOfCurrentTask,
} from './task-intents.ts'

/**
 * `newRunId` is the id of a run that the intent starts. `begun` are the ids of the open calls whose tool writes the
 * result: they run, or have run. `now` is milliseconds since 1970.
 */
export type Intent =
  | ({
      kind: 'message'
      content: readonly UserPart[]
      sender?: string
      slashCommand?: { readonly name: string; readonly text: string }
      run: boolean
      requestedRun?: RequestedRun
      begun: readonly string[]
      newRunId: string
      now: number
      /** What hooks said about it. */
      hooks?: PromptHooks
    } & StoredOnce)
  /** `afterSeq`: only if no run has begun after this event. */
  | ({ kind: 'run'; newRunId: string; afterSeq?: number } & RequestedRun)
  /** `interrupt`: running calls were asked to end, and calls that have not begun are cancelled. */
  | { kind: 'pause'; reason: string; interrupt: boolean; begun: readonly string[]; now: number; hasHooks?: boolean }
  | { kind: 'configure'; changes: Record<string, unknown> }
  /** Names only; the values are already stored. */
  | { kind: 'secrets'; added: readonly string[]; removed: readonly string[] }
  | WithdrawIntent
  | RewindIntent
  | EndRunIntent
  | RequestIntent
  | AwaitOutsideIntent
  | StartSubagentIntent
  | EndBackgroundIntent
  | DecideIntent
  | RejectIntent
  | RequestAnswersIntent
  | AnswerIntent
  | PostTaskIntent
  | StartTaskIntent
  | TickTaskIntent
  | EndTaskIntent
  | CancelTaskIntent
  | AnswerHeldIntent
  | ExpireIntent
  | { kind: 'client_event'; name: string; data?: unknown; idempotency?: Idempotency }
  | RecoverIntent
  | HandOverIntent

/** Returns the events of the intent, to be appended as one batch; empty if nothing changes. */
export function decide(state: State, intent: Intent): EventDraft[] | Problem {
  switch (intent.kind) {
    case 'message':
      return refuseNewer(state) ?? decideMessage(state, intent)
    case 'withdraw':
      return refuseNewer(state) ?? decideWithdraw(state, intent)
    case 'rewind':
    case 'files_restored':
      return refuseNewer(state) ?? decideRewind(state, intent)
    case 'run':
      return refuseNewer(state) ?? decideRun(state, intent)
    case 'pause':
      return decidePause(state, intent)
    case 'configure':
      return decideConfigure(state, intent.changes)
    case 'secrets':
      return decideSecrets(intent)
    case 'end_run':
      return decideEnd(state, intent)
    case 'request_permission':
      return openRequest(state, intent)
    case 'await_outside':
      return decideAwaitOutside(state, intent)
    case 'start_subagent':
      return decideStartSubagent(state, intent)
    case 'end_background':
      return decideEndBackground(state, intent)
    case 'decide':
      return refuseNewer(state) ?? decidePermission(state, intent)
    case 'request_answers':
      return decideQuestions(state, intent)
    case 'answer':
      return refuseNewer(state) ?? decideAnswer(state, intent)
    case 'answer_held':
      return refuseNewer(state) ?? decideAnswerHeld(state, intent)
    case 'expire':
      return refuseNewer(state) ?? decideExpire(state, intent)
    case 'reject':
      return decideReject(state, intent)
    case 'post_task':
      return refuseNewer(state) ?? decidePostTask(state, intent)
    case 'start_task':
      return decideStartTask(state, intent)
    case 'tick_task':
      return decideTickTask(state, intent)
    case 'end_task':
      return decideEndTask(state, intent)
    case 'cancel_task':
      return decideCancelTask(state, intent)
    case 'client_event':
      return decideClientEvent(intent)
    case 'recover':
      return decideRecover(state, intent)
    case 'hand_over':
      return decideHandOver(state, intent)
    default:
      return intent satisfies never
  }
}

type IntentOf<K extends Intent['kind']> = Extract<Intent, { kind: K }>

function decideMessage(state: State, intent: IntentOf<'message'>): EventDraft[] | Problem {
  const { content, sender, slashCommand, run, newRunId, hooks } = intent
  if (intent.requestedRun && readsMessages(state)) return alreadyRunning(state)
  const message: EventDraft = {
    type: 'UserMessage',
    source: 'user',
    content: [...content],
    run,
    ...(run && { run_id: readsMessages(state) && state.run ? state.run.id : newRunId }),
    ...(sender !== undefined && { sender }),
    ...(slashCommand && { slash_command: slashCommand }),
    ...(hooks?.context !== undefined && { context: hooks.context }),
    ...marksOf(intent),
  }
  return [...(hooks?.events ?? []), ...withMessage(state, intent, message)]
}

function withMessage(state: State, intent: IntentOf<'message'>, message: EventDraft): EventDraft[] {
  const { run, requestedRun, begun, newRunId, now } = intent
  if (readsMessages(state)) return [message]
  if (isWaiting(state.status)) {
    const endEvents = [...supersede(state), result(state, 'superseded', now)]
    // If a run is requested, the message only steers the agent's current task.
    if (run) return [...endEvents, message, start(state, newRunId, 'message', requestedRun)]
    const atRest = [...endOfCurrentTask(state, 'superseded'), message, toStatus(state, 'idle', 'superseded')]
    const after = { ...state, lastRun: afterMessage(state) }
    return [...endEvents, ...atRest, ...startForUnread(after, 'idle', state.readThrough, newRunId)]
  }
  // The model reads the message before any further call: it may decide that the rest of the turn must not run.
  const events = [...interruptCalls(state, begun, BEFORE_MESSAGE, UNANSWERED), message]
  return run ? [...events, start(state, newRunId, 'message', requestedRun)] : events
}

function decideRun(state: State, { newRunId, afterSeq, ...limits }: IntentOf<'run'>): EventDraft[] | Problem {
  switch (state.status) {
    case 'running':
      return alreadyRunning(state)
    case 'waiting_for_confirmation':
      return new Problem(
        'waiting_for_confirmation',
        'Tool calls are waiting for a decision; starting a run does not approve them.',
        {
          details: {
            request_id: openPermissions(state)[0]?.id,
            pending: openPermissions(state)
              .flatMap(undecidedCalls)
              .map((call) => ({ tool_use_id: call.toolUseId, name: call.name })),
          },
        },
      )
    case 'waiting_for_input':
      return refuseRunDuringQuestions(state)
    case 'waiting_for_client':
      return new Problem(
        'waiting_for_client',
        'A client executes a call of the agent; send its result, or pause with interrupt: true.',
        {
          details: { pending: clientCallsOf(state).map(({ request_id, payload: { name } }) => ({ request_id, name })) },
        },
      )
    case 'idle':
    case 'paused':
    case 'finished':
    case 'error':
    case 'cancelled':
      return (
        // Paused while it waited, it waits again: resuming neither approves nor answers anything.
        refuseSecond(state, afterSeq) ?? [
          { ...start(state, newRunId, 'run', limits), status: statusOfWait(state) ?? 'running' },
        ]
      )
    default:
      return state.status satisfies never
  }
}

/**
 * Pausing a conversation that does not run is not an error; it changes nothing, except that `interrupt` cancels the
 * calls that an earlier pause has kept. Subagents in the background are paused in every status.
 */
function decidePause(state: State, intent: IntentOf<'pause'>): EventDraft[] {
  const { reason, interrupt, begun, now, hasHooks = false } = intent
  // The agent has answered: it is too late to pause.
  const over = endAnswered(state, now, hasHooks)
  if (over) return over
  const why = beforePause(reason)
  const interruptions = interrupt
    ? [...interruptCalls(state, begun, why), ...endBackground(state, begun, 'cancelled', why)]
    : []
  if (state.status !== 'running' && !isWaiting(state.status)) {
    const pauses = state.status !== 'paused' && areInBackground(state)
    return pauses ? [...interruptions, toStatus(state, 'paused', reason)] : interruptions
  }
  return [
    ...interruptions,
    result(state, 'paused', now, { isInterrupted: interrupt && reason !== 'server_closing' }),
    toStatus(state, 'paused', reason),
  ]
}

function decideConfigure(state: State, changes: Record<string, unknown>): EventDraft[] | Problem {
  if (('workdir' in changes || 'additional_directories' in changes) && isWorking(state)) {
    return new Problem(
      'conversation_running',
      'The directories can only be changed while no agent works and no call is open; pause with interrupt: true first.',
    )
  }
  if (changesNetworkMode(state, changes) && isWorking(state)) {
    return new Problem(
      'conversation_running',
      'The mode of the network can only be changed while no agent works and no call is open; pause with interrupt: true first.',
    )
  }
  return Object.keys(changes).length ? [{ type: 'ConfigUpdate', source: 'user', changes }] : []
}

/** Returns true, too, while calls are kept for the next run. */
export const isWorking = (state: State) =>
  state.status === 'running' || state.openCalls.length > 0 || areInBackground(state)

/** Shells keep the network that they were started in: such a change ends them. */
export function changesNetworkMode({ settings }: State, { network }: Record<string, unknown>): boolean {
  // It was checked when it came.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as it was checked when it came
  return network !== undefined && (network as { mode?: unknown }).mode !== settings.network?.mode
}

function decideSecrets({ added, removed }: IntentOf<'secrets'>): EventDraft[] {
  if (added.length + removed.length === 0) return []
  return [{ type: 'SecretsUpdate', source: 'user', added: [...added], removed: [...removed] }]
}

function decideClientEvent({ name, data, idempotency }: IntentOf<'client_event'>): EventDraft[] {
  return [{ type: 'ClientEvent', source: 'user', name, ...(data !== undefined && { data }), ...keyOf(idempotency) }]
}
