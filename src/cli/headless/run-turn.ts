/**
 * Sends one message, or continues without one, and follows the run to its end. What it waits for is answered by `waits`.
 */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { Status } from '../../contract/events/status.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { StoppedSession } from '../../sdk/session/stopped-session.ts'
import { BackgroundWork } from '../../sdk/session/background-work.ts'
import { AT_REST, continueStopped, hasWork, readStopped } from '../../sdk/session/stopped-session.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { OverrideOptions } from '../settings/conversation-settings.ts'
import { startRun } from '../conversation/start-run.ts'
import type { DeniedCall } from './answer-waits.ts'
import type { Waits } from './waits.ts'

export type TurnRequest = {
  readonly conversation: ConversationHandle
  readonly waits: Waits
  /** Undefined: the conversation continues where it stopped. */
  readonly content: UserInput['content'] | undefined
  /** The place where it stopped, if that was read already. */
  readonly stopped?: StoppedSession | undefined
  /** Seq of the last event that was read; undefined: of the last one. */
  readonly after?: number | undefined
  /** Ends only this turn, and not the run. */
  readonly until?: AbortSignal
  readonly maxSteps: number | undefined
  /** Whether the turn lasts while subagents work in the background: they end with this process. */
  readonly waitsForSubagents: boolean
  /** The first answer of the model must call a tool. */
  readonly forcesTool: boolean
  readonly overrides: OverrideOptions
  readonly onEvent: (event: Event) => void
  /** Receives what the model is writing; undefined: it is not followed. */
  readonly onDelta?: ((delta: TransientEvent) => void) | undefined
  /** Whether the run continues when the process that ran the agents has ended. */
  readonly continuesRuns: boolean
  /** Returns true if the run is to end: checked where it begins, because a pause before that would be lost. */
  readonly isStopped: () => boolean
}

export type TurnEnd = {
  readonly status: EventOf<'StatusUpdate'>['status']
  readonly result: EventOf<'Result'> | undefined
  readonly error: EventOf<'ErrorEvent'> | undefined
  readonly denied: readonly DeniedCall[]
  /** The steps of all runs of the turn. */
  readonly steps: number
}

/** How long the process that runs the agents may be gone, in milliseconds. */
const GIVE_UP_AFTER_MS = 20_000

/** Returns undefined if `until` has aborted before the end. */
export async function runTurn(turn: TurnRequest): Promise<TurnEnd | undefined> {
  try {
    return await followTurn(turn, await beginTurn(turn))
  } catch (error) {
    if (turn.until?.aborted && error === turn.until.reason) return undefined
    throw error
  }
}

/** `runId` is undefined for any run of the main agent: one that was active or waited when the turn began. */
type BegunTurn = { readonly after: number; readonly runId: string | undefined }

async function beginTurn(turn: TurnRequest): Promise<BegunTurn> {
  const { conversation, content, isStopped } = turn
  if (content === undefined) return await beginWithoutMessage(turn)
  const after = turn.after ?? (await conversation.get()).last_seq
  const runId = await startRun(conversation, { ...turn, content })
  if (isStopped()) await conversation.pause({ interrupt: true })
  return { after, runId }
}

async function beginWithoutMessage(turn: TurnRequest): Promise<BegunTurn> {
  const { conversation, waits, onEvent, isStopped } = turn
  const stoppedSession = turn.stopped ?? (await readStopped(conversation, await conversation.get()))
  await requireWork(conversation, stoppedSession)
  const status = await withoutRun(turn, stoppedSession)
  const runId = await continueStopped(conversation, { ...stoppedSession, status }, optionsOf(turn, 0))
  if (isStopped()) await conversation.pause({ interrupt: true })
  for (const event of stoppedSession.waiting) {
    onEvent(event)
    await waits.take(event)
  }
  return { after: stoppedSession.after, runId }
}

/** A run that waits has what it began with. Another run begins with what this command gives; what waits still waits. */
async function withoutRun({ conversation, overrides }: TurnRequest, { status }: StoppedSession): Promise<Status> {
  if (!WAITS.has(status) || Object.keys(overrides).length === 0) return status
  return (await conversation.pause()).status
}

/** Throws a `UsageError` if only a message can continue it. */
export async function requireWork(conversation: ConversationHandle, stoppedSession: StoppedSession): Promise<void> {
  if (await hasWork(conversation, stoppedSession)) return
  throw new UsageError('there is nothing to continue: no message is unanswered, and nothing waits; give a prompt.')
}

async function followTurn(turn: TurnRequest, begunTurn: BegunTurn): Promise<TurnEnd> {
  const { conversation, waits, onEvent, onDelta, until } = turn
  let { runId } = begunTurn
  let end: Pick<TurnEnd, 'result' | 'error'> = { result: undefined, error: undefined }
  let steps = 0
  const background = new BackgroundWork([])
  // This is the end of the last run, while subagents work.
  let turnEnd: TurnEnd | undefined
  const signal = until ? AbortSignal.any([waits.signal, until]) : waits.signal
  const following = { after: begunTurn.after, giveUpAfterMs: GIVE_UP_AFTER_MS, signal, deltas: onDelta !== undefined }
  for await (const event of conversation.events(following)) {
    if (!('seq' in event)) {
      onDelta?.(event)
      continue
    }
    onEvent(event)
    await waits.take(event)
    background.take(event)
    if (turnEnd && (await isLeft(conversation, event, background))) return turnEnd
    if (!('run_id' in event) || (runId !== undefined && event.run_id !== runId)) continue
    end = endAfter(end, event)
    if (event.type === 'Result' && event === end.result) {
      steps += event.steps
      // A message of another client has closed what waited: the next status can be that of the run that reads it.
      if (event.stop_reason === 'superseded') runId = undefined
    }
    if (event.type !== 'StatusUpdate' || GOES_ON.has(event.status)) continue
    if (mayContinue(turn, event, steps)) runId = await runAgain(turn, event.seq, steps)
    else {
      turnEnd = { status: event.status, ...end, denied: [...(turnEnd?.denied ?? []), ...waits.takeDenied()], steps }
      if (!turn.waitsForSubagents || !AT_REST.has(event.status) || !background.continues(ANSWERED)) return turnEnd
      runId = undefined
    }
  }
  throw new AgentServerError('conversation_deleted', 'The conversation was deleted before the run ended.')
}

/** What they ask is answered as what the main agent asks. */
const ANSWERED = () => true

/** True if subagents have worked, and no run reads their results: they were interrupted, or may not start one. */
async function isLeft(conversation: ConversationHandle, event: Event, background: BackgroundWork): Promise<boolean> {
  if (event.type === 'StatusUpdate') return !GOES_ON.has(event.status) && event.run_id === undefined
  if (event.type !== 'Result' || background.continues(ANSWERED)) return false
  const { status, last_seq } = await conversation.get()
  return status !== 'running' && last_seq <= event.seq
}

/** The process that ran the agents has ended; now they run in another one. */
function mayContinue(
  { continuesRuns, isStopped, maxSteps = Infinity }: TurnRequest,
  { status, reason }: EventOf<'StatusUpdate'>,
  steps: number,
): boolean {
  return status === 'paused' && ENDS_OF_SERVERS.has(reason) && continuesRuns && !isStopped() && steps < maxSteps
}

/** A stop, and a crash that the next server has found. */
const ENDS_OF_SERVERS: ReadonlySet<string> = new Set(['server_closing', 'server_restart', 'owner_lost'])

/** Returns the id of the run, if it is known. Another client may have started it. */
const runAgain = (turn: TurnRequest, after: number, steps: number) =>
  continueStopped(turn.conversation, { status: 'paused', after }, optionsOf(turn, steps))

function optionsOf({ maxSteps, forcesTool, overrides }: TurnRequest, steps: number) {
  return withoutUndefined({
    ...overrides,
    max_steps: maxSteps === undefined ? undefined : maxSteps - steps,
    tool_choice: forcesTool && steps === 0 ? ('required' as const) : undefined,
  })
}

function endAfter(end: Pick<TurnEnd, 'result' | 'error'>, event: Event): typeof end {
  // Subagents have results and errors, too.
  if ('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined) return end
  if (event.type === 'Result') return { ...end, result: event }
  return event.type === 'ErrorEvent' ? { ...end, error: event } : end
}

const WAITS: ReadonlySet<string> = new Set<Status>([
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])

/** What it waits for is answered here. */
const GOES_ON: ReadonlySet<string> = new Set([...WAITS, 'running'])
