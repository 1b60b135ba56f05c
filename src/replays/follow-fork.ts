/** Follows the run of one fork to its end, and measures what it did. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StopReason } from '../contract/events/status.ts'
import { Problem } from '../contract/problem.ts'
import type { ReplayPlan, ReplayRow } from '../contract/replay.ts'
import type { UsageByModel } from '../contract/values/message.ts'
import { RunCommand } from '../contract/values/command.ts'
import type { Conversation } from '../conversations/conversation.ts'
import { startForkRun } from '../conversations/fork.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import type { EventLog } from '../events/event-log.ts'
import { readPages } from '../events/read-pages.ts'
import { areInBackground } from '../state/subagents.ts'

type Opens = Pick<ConversationManager, 'open' | 'recover'>

/**
 * Starts the run, unless an earlier server has. Resolves when the agent has ended, or waits for somebody: nobody answers a
 * replay. Rejects with the reason of the signal.
 */
export async function followFork(manager: Opens, id: string, signal: AbortSignal): Promise<Conversation> {
  let conversation = await openWhenPossible(manager, id, signal)
  await startForkRun(conversation)
  for (;;) {
    await untilSettled(conversation, signal)
    signal.throwIfAborted()
    if (conversation.log.ended === undefined && !conversation.log.failed) return conversation
    // Its log has failed, and the conversation was opened again; or it was deleted, and this throws.
    conversation = await openWhenPossible(manager, id, signal)
  }
}

/**
 * Another instance has continued the fork while this one was stopped, until it rests; or the database is away. The run of a fork
 * whose instance has ended continues.
 */
async function openWhenPossible(manager: Opens, id: string, signal: AbortSignal): Promise<Conversation> {
  for (;;) {
    try {
      return await manager.recover(id)
    } catch (error) {
      // The server has continued the run itself.
      if (error instanceof Problem && error.code === 'already_running') return await manager.open(id)
      if (!(error instanceof Problem && error.code === 'storage_unavailable')) throw error
      await sleep(LOOK_AGAIN_MS, undefined, { signal, ref: false }).catch(() => signal.throwIfAborted())
    }
  }
}

const LOOK_AGAIN_MS = 1000

async function untilSettled(conversation: Conversation, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = () => resolve()
  const look = () => {
    if (isSettled(conversation)) end()
  }
  const unsubscribe = conversation.log.subscribe({ onEvents: look, onClose: end })
  signal.addEventListener('abort', end, { once: true })
  try {
    look()
    if (!signal.aborted) await promise
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', end)
  }
}

function isSettled({ state, requests }: Conversation): boolean {
  if (requests.list().length > 0) return true
  // The recovery of the server continues it, unless a client has changed that.
  const isCutOff = state.status === 'paused' && CUT_OFF.has(state.reason ?? '') && state.settings.resume_on_start
  return state.status !== 'running' && !isCutOff && !areInBackground(state)
}

const CUT_OFF: ReadonlySet<string> = new Set(['server_restart', 'server_closing', 'owner_lost'])

/** Ends what still works, so that it costs nothing after the table was made. */
export async function endFork(conversation: Conversation): Promise<void> {
  const { requests, state } = conversation
  const isWaiting = requests.list().length > 0
  if (isWaiting || state.status === 'running') await conversation.pause({ interrupt: true, reason: 'replay_ended' })
}

type MeasuredResult = Pick<
  ReplayRow,
  'outcome' | 'steps' | 'input_tokens' | 'output_tokens' | 'cost_usd' | 'duration_ms' | 'changes' | 'message'
>

/** Call it when the fork does not work any more. `isWaiting`: it was ended because it asked for something. */
export async function measureFork({ files, log, state }: Conversation, isWaiting: boolean): Promise<MeasuredResult> {
  const runs = await runsOf(log)
  const last = runs.stop
  const changes = await files.snapshots.changesSince(runs.startSeq)
  return {
    ...(isWaiting ? { outcome: 'waiting' as const } : last !== undefined && { outcome: last }),
    steps: runs.steps,
    ...tokensOf(state.usage),
    cost_usd: state.costUsd ?? 0,
    duration_ms: runs.duration_ms,
    ...(changes && { changes }),
    ...(runs.message !== undefined && { message: runs.message }),
  }
}

type Runs = {
  stop: StopReason | undefined
  steps: number
  duration_ms: number
  /** Seq of the first event of the first run. */
  startSeq: number
  message: string | undefined
}

const ENDS: ReadonlySet<string> = new Set(['Result', 'ErrorEvent', 'ForkedFrom', 'StatusUpdate'])

/** Sums up the runs since the fork: a restart of the server, or a subagent in the background, makes another one. */
async function runsOf(log: EventLog): Promise<Runs> {
  const runs: Runs = { stop: undefined, steps: 0, duration_ms: 0, startSeq: log.head, message: undefined }
  for await (const { events } of readPages(log, { order: 'desc', types: ENDS, limit: 100 }))
    for (const { event } of events) {
      if (event.type === 'ForkedFrom') return runs
      if ('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined) continue
      if (event.type === 'StatusUpdate' && event.status === 'running') runs.startSeq = event.seq
      if (event.type === 'ErrorEvent' && (runs.stop === undefined || runs.stop === 'error'))
        runs.message ??= event.message
      if (event.type !== 'Result') continue
      runs.stop ??= event.stop_reason
      runs.steps += event.steps
      runs.duration_ms += event.duration_ms
    }
  return runs
}

function tokensOf(usage: UsageByModel): Pick<ReplayRow, 'input_tokens' | 'output_tokens'> {
  const all = Object.values(usage)
  return {
    input_tokens: all.reduce((sum, each) => sum + each.input_tokens, 0),
    output_tokens: all.reduce((sum, each) => sum + each.output_tokens, 0),
  }
}

/**
 * Throws a `Problem` if it cannot begin: a rule denies it, or it contains a secret. The session has a random name: an agent
 * that knew it could leave a directory, exports or functions in it that change the check.
 */
export async function checkFork(
  { exec }: Conversation,
  check: NonNullable<ReplayPlan['check']>,
  signal: AbortSignal,
): Promise<NonNullable<ReplayRow['check']>> {
  const command = RunCommand.parse({ ...check, session_id: `check-${randomUUID()}` })
  const { status, exit_code } = await exec.commands.run(command, { signal })
  return { status, exit_code }
}
