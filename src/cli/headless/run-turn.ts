/** Sends one message and follows its run to the end. What it waits for is answered by `waits`. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { UserInput } from '../../contract/message.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { startRun } from '../start-run.ts'
import type { Denied } from './answer-waits.ts'
import type { Waits } from './waits.ts'

export type TurnRequest = {
  readonly conversation: ConversationHandle
  readonly waits: Waits
  readonly content: UserInput['content']
  readonly maxSteps: number | undefined
  /** The first answer of the model must call a tool. */
  readonly forcesTool: boolean
  readonly onEvent: (event: Event) => void
  /** Whether the run continues when the process that ran the agents has ended. */
  readonly continuesRuns: () => boolean
  /** Whether the run is to end: checked where it begins, because a pause before that would be lost. */
  readonly isStopped: () => boolean
}

export type TurnEnd = {
  readonly status: EventOf<'StatusUpdate'>['status']
  readonly result: EventOf<'Result'> | undefined
  readonly error: EventOf<'ErrorEvent'> | undefined
  readonly denied: readonly Denied[]
  /** Of all runs of the turn. */
  readonly steps: number
}

/** How long the process that runs the agents may be gone, in milliseconds. */
const GIVE_UP_AFTER_MS = 20_000

export async function runTurn(turn: TurnRequest): Promise<TurnEnd> {
  const { conversation, waits, onEvent, isStopped } = turn
  const { last_seq } = await conversation.get()
  let runId = await startRun(conversation, turn)
  if (isStopped()) await conversation.pause({ interrupt: true })
  let end: Pick<TurnEnd, 'result' | 'error'> = { result: undefined, error: undefined }
  let steps = 0
  const { signal } = waits
  for await (const event of conversation.events({ after: last_seq, giveUpAfterMs: GIVE_UP_AFTER_MS, signal })) {
    onEvent(event)
    await waits.take(event)
    if (!('run_id' in event) || event.run_id !== runId) continue
    end = endAfter(end, event)
    if (event.type !== 'StatusUpdate' || GOES_ON.has(event.status)) continue
    steps += end.result?.steps ?? 0
    if (mayContinue(turn, event, steps)) runId = await runAgain(turn, steps)
    else return { status: event.status, ...end, denied: waits.takeDenied(), steps }
  }
  throw new AgentServerError('conversation_deleted', 'The conversation was deleted before the run ended.')
}

/** The process that ran the agents has ended; now they run in another one. */
function mayContinue(
  { continuesRuns, isStopped, maxSteps = Infinity }: TurnRequest,
  { status, reason }: EventOf<'StatusUpdate'>,
  steps: number,
): boolean {
  return status === 'paused' && ENDS_OF_SERVERS.has(reason) && continuesRuns() && !isStopped() && steps < maxSteps
}

/** A stop, and a crash that the next server has found. */
const ENDS_OF_SERVERS: ReadonlySet<string> = new Set(['server_closing', 'server_restart'])

/** Returns the id of the run. Another client may have started it. */
async function runAgain({ conversation, maxSteps, forcesTool }: TurnRequest, steps: number): Promise<string> {
  const options = withoutUndefined({
    max_steps: maxSteps === undefined ? undefined : maxSteps - steps,
    tool_choice: forcesTool && steps === 0 ? ('required' as const) : undefined,
  })
  try {
    return (await conversation.run(options)).run_id
  } catch (error) {
    const runId = error instanceof AgentServerError && error.code === 'already_running' && error.details?.['run_id']
    if (typeof runId !== 'string') throw error
    return runId
  }
}

function endAfter(end: Pick<TurnEnd, 'result' | 'error'>, event: Event): typeof end {
  // A subagent has a result, too.
  if (event.type === 'Result' && event.parent_tool_use_id === undefined) return { ...end, result: event }
  return event.type === 'ErrorEvent' ? { ...end, error: event } : end
}

/** What it waits for is answered here. */
const GOES_ON: ReadonlySet<string> = new Set(['running', 'waiting_for_confirmation', 'waiting_for_input'])
