/** Event drafts that several intents share: a run's start and end, and calls that are answered or denied. */
import type { ToolCall } from './tool-call.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { RunSampling, ToolChoice } from '../contract/values/llm-config.ts'
import type { Status, StopReason, ToolErrorType } from '../contract/events/status.ts'
import { isHandedOver, resultFromClient } from './client-result.ts'
import { isQuestion } from './open-requests.ts'
import { closePermission, closing } from './request-drafts.ts'
import type { CloseReason } from '../contract/events/request-events.ts'
import type { Subagent } from './state-shape.ts'
import { findSubagent, stateOf } from './subagents.ts'
import type { Idempotency, StoredOnce } from './idempotency.ts'
import { DEQUEUED, QUEUED } from '../contract/events/status.ts'
import type { PermissionMode } from '../contract/values/permission.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { State } from './state.ts'

type StatusDraft = Extract<EventDraft, { type: 'StatusUpdate' }>

/** True if the run has left its slot until somebody answers. */
export const isWaiting = (status: Status) => status.startsWith('waiting_')

/** Returns the key of a request as events store it. */
export const keyOf = (idempotency: Idempotency | undefined) =>
  idempotency ? { idempotency_key: idempotency.key, body_hash: idempotency.bodyHash } : {}

export const marksOf = ({ idempotency, clientMessage }: StoredOnce) => ({
  ...(clientMessage && { client_message_id: clientMessage.id, body_hash: clientMessage.bodyHash }),
  ...(idempotency && keyOf(idempotency)),
})

export const inRun = (state: Pick<State, 'run'>) => (state.run ? { run_id: state.run.id } : {})

/** The options of one run. */
export type RequestedRun = {
  readonly maxSteps?: number
  readonly outputSchema?: Record<string, unknown>
  readonly toolChoice?: ToolChoice
  readonly model?: string
  readonly permissionMode?: PermissionMode
  readonly allowedTools?: readonly string[]
  readonly instructions?: string
  readonly sampling?: RunSampling
}

export function start(state: State, runId: string, reason: string, requestedRun: RequestedRun = {}): StatusDraft {
  const { maxSteps: max_steps, outputSchema: output_schema, toolChoice: tool_choice, model } = requestedRun
  const { permissionMode: permission_mode, allowedTools, instructions, sampling } = requestedRun
  return {
    type: 'StatusUpdate',
    source: 'environment',
    run_id: runId,
    status: 'running',
    previous_status: state.status,
    reason,
    ...(max_steps !== undefined && { max_steps }),
    ...(output_schema && { output_schema }),
    ...(tool_choice && { tool_choice }),
    ...(model !== undefined && { model }),
    ...(permission_mode && { permission_mode }),
    ...(allowedTools && { allowed_tools: [...allowedTools] }),
    ...(instructions !== undefined && { instructions }),
    ...sampling,
  }
}

/** Runs that subagents in the background start, one after the other: without a limit they could start each other forever. */
const MAX_WAKES_IN_A_ROW = 20

/** False if a run must wait for the user. Any message of the user sets `runsInARow` to 0. */
export const mayFollow = ({ runsInARow }: Pick<State, 'runsInARow'>) => runsInARow <= MAX_WAKES_IN_A_ROW

/** The statuses after which the agent may continue; after any other one, only the user decides. */
const WAKES: ReadonlySet<Status> = new Set(['idle', 'finished'])

/** True if a subagent in the background that ends with this status may start a run. */
export const isAwake = (status: Status): boolean => WAKES.has(status)

/**
 * Starts a run for an unread message, after a run has ended with this status: for one that asked for it, or for the end of
 * a subagent. `readThrough` is the seq of the last event that counts as read.
 */
export function startForUnread(state: State, status: Status, readThrough: number, newRunId: string): EventDraft[] {
  if (!mayFollow(state)) return []
  if (state.runRequestedAt > readThrough) return [start({ ...state, status }, newRunId, 'message')]
  const wakes = state.subagentEndedAt > readThrough && isAwake(status)
  return wakes ? [startToRead({ ...state, status }, newRunId)] : []
}

/** Starts a run that reads the end of a subagent. It continues what the last run did, with what that run had. */
export function startToRead(state: State, newRunId: string): EventDraft {
  const { allowed, ...others } = state.lastRun?.overrides ?? {}
  return start(state, newRunId, 'subagent', withoutUndefined({ ...others, allowedTools: allowed?.allow }))
}

/** True if a message of a subagent is unread, and no run starts for it before the user asks for one. */
export const waitsForUser = (state: State, readThrough: number): boolean =>
  state.subagentEndedAt > readThrough && !mayFollow(state)

export function toStatus(state: State, status: Status, reason: string): EventDraft {
  return { type: 'StatusUpdate', source: 'environment', ...inRun(state), status, previous_status: state.status, reason }
}

export const toQueued = (state: State) => toStatus(state, 'running', QUEUED)
export const toDequeued = (state: State) => toStatus(state, 'running', DEQUEUED)

/** Why calls get a result without having run. */
export type Unrun = {
  readonly type: ToolErrorType
  /** Why their requests are closed. */
  readonly why: CloseReason
  readonly message: string
  /** The message for calls that have asked the user and got no answer. Default: `message`. */
  readonly toQuestion?: string | undefined
  /** Why a subagent that works for one of them ends. */
  readonly stopReason?: StopReason
}

/** What the model reads of a call that a client executes. */
export const MAY_HAVE_RUN = 'The call was interrupted. The client may have executed it.'

/** Answers calls, and with a call of a subagent everything of that subagent. Closes what they wait for. */
export function answerOpenCalls(state: State, unrun: Unrun): EventDraft[] {
  const { message, toQuestion = message } = unrun
  return state.openCalls.flatMap((call) => {
    if (isHandedOver(state, call))
      return answerCall(state, call, { ...unrun, type: 'interrupted', message: MAY_HAVE_RUN })
    const own = isQuestion(state.requests, call.toolUseId) ? toQuestion : message
    return answerCall(state, call, { ...unrun, message: own })
  })
}

/** The result of a call: what a client sent for it before a crash, or this one. It comes after the end of the subagent that worked for it. */
export function answerCall(state: State, call: ToolCall, unrun: Omit<Unrun, 'toQuestion'>): EventDraft[] {
  const { type, why, message, stopReason = type === 'rejected' ? 'rejected' : 'cancelled' } = unrun
  const subagent = findSubagent(state, call.toolUseId)
  if (subagent) {
    const result = answer(call, type, `${message} ${tellResume(subagent)}`)
    return [...endOfSubagent(state, subagent, stopReason, { message, why }), result]
  }
  const waiting = state.requests.filter(({ tool_use_ids }) => tool_use_ids.includes(call.toolUseId))
  const closings = waiting.map((request) => ({ ...closing(request, why), ...inRun(state) }))
  return [...closings, resultFromClient(call) ?? answer(call, type, message)]
}

/** Returns how the agent that called it can continue it. */
const tellResume = ({ agentId, name }: Subagent) =>
  `The subagent ${name} can be continued: call Task with resume: "${agentId}".`

/** Ends a subagent: its approvals are denied, each of its calls gets a result, and its `Result` follows. */
export function endOfSubagent(
  state: State,
  subagent: Subagent,
  reason: StopReason,
  { message, why }: Pick<Unrun, 'message' | 'why'>,
  end: RunOutput = {},
): EventDraft[] {
  const own = stateOf(state, subagent)
  const endsOfCalls = [
    ...closePermission(own, why, message),
    ...answerOpenCalls(own, { type: 'interrupted', why, message }),
  ]
  // The time of the last event: what is decided depends on the log only.
  return inSubagent(
    [...endsOfCalls, resultOfSubagent(own, subagent, reason, Date.parse(state.updatedAt), end)],
    subagent,
  )
}

/** The main agent reads that of a subagent in the background as a message. */
export function resultOfSubagent(
  own: State,
  { isBackground, agentId }: Subagent,
  reason: StopReason,
  now: number,
  end: RunOutput = {},
): EventDraft {
  const draft = result(own, reason, now, end)
  return isBackground && draft.type === 'Result' ? { ...draft, background_agent_id: agentId } : draft
}

/**
 * Ends the subagents that work in the background, except while one of their calls does. A call that has no result yet ends
 * its own.
 */
export function endBackground(
  state: State,
  begunCalls: readonly string[],
  reason: StopReason,
  message: string,
  mayEnd: (subagent: Subagent) => boolean = () => true,
): EventDraft[] {
  const isBegun = ({ toolUseId }: ToolCall) => begunCalls.includes(toolUseId)
  return state.subagents
    .filter((each) => each.isBackground && !begunCalls.includes(each.toolUseId) && mayEnd(each))
    .filter(({ agent }) => !agent.openCalls.some((call) => hasBegun(state, call, isBegun)))
    .filter(({ toolUseId }) => !state.openCalls.some((call) => call.toolUseId === toolUseId))
    .flatMap((subagent) => endOfSubagent(state, subagent, reason, { message, why: whyOf(reason) }))
}

/** The end of a subagent in the background that a client has stopped; none if it has ended. Its own calls have their results. */
export function stoppedByClient(state: State, toolUseId: string): EventDraft[] {
  const subagent = findSubagent(state, toolUseId)
  if (!subagent?.isBackground) return []
  const why = { message: 'interrupted: the user stopped the subagent', why: 'interrupted' } as const
  return endOfSubagent(state, subagent, 'cancelled', why, { isInterrupted: true })
}

const whyOf = (reason: StopReason): CloseReason =>
  reason === 'server_restart' || reason === 'owner_lost' ? 'server_restart' : 'interrupted'

/** Events of a subagent; those of its subagents name their call already. */
export function inSubagent(drafts: readonly EventDraft[], { toolUseId, name }: Subagent): EventDraft[] {
  return drafts.map((draft) => ({ parent_tool_use_id: toolUseId, agent_name: name, ...draft }))
}

/**
 * Gives each open call that has not begun its result, so that it never runs. `begun` are the ids of calls whose tool
 * writes the result. Pending approvals are denied: there is nothing left to decide.
 */
export function interruptCalls(
  state: State,
  begunCalls: readonly string[],
  message: string,
  toQuestion?: string,
): EventDraft[] {
  // Nothing waits without an open call.
  if (state.openCalls.length === 0) return []
  const isMessage = message === BEFORE_MESSAGE
  // A message changes nothing about what a client executes.
  const areBegun = (call: ToolCall) => begunCalls.includes(call.toolUseId) || (isMessage && isHandedOver(state, call))
  const openCalls = state.openCalls.filter((call) => !hasBegun(state, call, areBegun))
  const why = isMessage ? 'message' : message === BEFORE_REWIND ? 'rewound' : 'interrupted'
  const results = answerOpenCalls({ ...state, openCalls }, { type: 'interrupted', why, message, toQuestion })
  return [...closePermission(state, why, message), ...results]
}

/** Returns true, too, for the call of a subagent while one of the subagent's calls has begun. */
function hasBegun(state: State, call: ToolCall, isBegun: (call: ToolCall) => boolean): boolean {
  if (isBegun(call)) return true
  const { agent } = findSubagent(state, call.toolUseId) ?? {}
  return agent?.openCalls.some((own) => hasBegun(state, own, isBegun)) ?? false
}

/** Why a call has no result that was open when the conversation went back. */
export const BEFORE_REWIND = 'interrupted: the conversation was taken back to an event before this call'

const BEFORE_PAUSE = 'interrupted: the run was paused before this call began; it did not run'

/** A rewind pauses a run first. */
export const beforePause = (reason: string): string => (reason === 'rewound' ? BEFORE_REWIND : BEFORE_PAUSE)

/** Why a call did not run that was open when the user wrote. */
export const BEFORE_MESSAGE = 'interrupted: the user wrote a message before this call began; it did not run'

export function answer(call: ToolCall, error_type: ToolErrorType, message: string): EventDraft {
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

/** The output of a run, if its end has one. */
export type RunOutput = {
  readonly finalText?: string
  readonly structuredOutput?: unknown
  readonly changes?: { readonly files: number; readonly added: number; readonly removed: number }
  readonly snapshotFailed?: boolean
  readonly waitsForUser?: boolean
  readonly isInterrupted?: boolean
}

/** Takes the run's last message as the final text if `finalText` is absent or empty. */
export function result(state: State, stopReason: StopReason, now: number, end: RunOutput = {}): EventDraft {
  const run = state.run
  return {
    type: 'Result',
    source: 'environment',
    ...inRun(state),
    final_text: end.finalText || (run?.finalText ?? ''),
    usage: run?.usage ?? {},
    ...(run?.costUsd !== undefined && { cost_usd: run.costUsd }),
    ...('structuredOutput' in end && { structured_output: end.structuredOutput }),
    stop_reason: stopReason,
    ...(end.changes && { changes: { ...end.changes } }),
    ...(end.snapshotFailed && { snapshot_failed: true as const }),
    ...(end.isInterrupted && { interrupted: true as const }),
    steps: run?.steps ?? 0,
    duration_ms: run ? Math.max(0, now - Date.parse(run.startedAt)) : 0,
    session_id: state.id,
    ...(end.waitsForUser && { waits_for_user: true as const }),
  }
}
