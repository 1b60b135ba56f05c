/**
 * How a client takes a conversation back: the log keeps everything, and from one event on the agent knows nothing of what
 * came after another.
 */
import type { Event, EventOf } from '../contract/events/event.ts'
import { cursorAhead, Problem } from '../contract/problem.ts'
import type { RewindOutcome, RewindRequest } from '../contract/rewind.ts'
import type { Process } from '../contract/values/command.ts'
import type { EventLog } from '../events/event-log.ts'
import { readPages } from '../events/read-pages.ts'
import { postOnce } from '../idempotency/posted-keys.ts'
import { Interrupt } from '../llm/llm.ts'
import type { Idempotency, PostedKey } from '../state/idempotency.ts'
import { changedMeanwhile, refuseNewer } from '../state/refusals.ts'
import { closedByRewind } from '../state/rewind-intent.ts'
import { tasksBeyond } from '../state/task-intents.ts'
import type { ConversationFiles } from '../workspace/files/files.ts'
import type { ClientExec } from '../workspace/exec/client-exec.ts'
import type { ConversationActor } from './actor.ts'
import type { LiveState } from './live/live-state.ts'
import type { Compactions } from './runs/compactions.ts'
import { planFiles, refuseChanged, restoreFiles } from './rewind/restore-files.ts'
import { findTarget } from './rewind/rewind-target.ts'

type RewindParts = {
  readonly log: EventLog
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly exec: Pick<ClientExec, 'processes' | 'shells'>
  readonly compactions: Pick<Compactions, 'isIdle'>
  readonly files: Pick<ConversationFiles, 'snapshots'>
  readonly redact: (text: string) => string
  readonly forgetEdits: () => Promise<void>
}

export type RewindOptions = {
  readonly dryRun?: boolean
  /** The name of the client's API key. */
  readonly by?: string | undefined
  readonly idempotency?: Idempotency | undefined
  /** Throws a `Problem` if another conversation works in the directories. */
  readonly others?: () => Promise<void>
}

/**
 * Idempotent with a key. Throws a `Problem`: `invalid_request` and `cursor_ahead` for an event to which it cannot go back,
 * `conversation_changed`, and `conversation_running` during a compaction.
 */
export async function rewindConversation(
  parts: RewindParts,
  request: RewindRequest,
  { dryRun = false, ...options }: RewindOptions,
): Promise<RewindOutcome> {
  const { log, actor, state, redact } = parts
  const { idempotency } = options
  const make = () => rewindNow(parts, request, options)
  if (dryRun) return await planRewind(parts, request)
  const again = async ({ answer }: PostedKey) => await earlierOutcome(log, answer.seq)
  return await actor.enqueue(() =>
    postOnce(idempotency, { log, redact, remembered: state.current.postedKeys, again, make }),
  )
}

async function planRewind(parts: RewindParts, request: RewindRequest): Promise<RewindOutcome> {
  const { log, state } = parts
  const { to_seq, files = false, conversation = true } = request
  await refuse(parts, request)
  if (conversation) await findTarget(log, state.current.rewound, to_seq)
  return {
    to_seq,
    closed: conversation ? closedByRewind(state.current, to_seq) : NOTHING,
    ...(files && { files: await planFiles(parts, to_seq) }),
    processes: await leftProcesses(parts),
  }
}

/** Restores files first: if the server is killed in between, the same request does the rest. Call it in turn only. */
async function rewindNow(parts: RewindParts, request: RewindRequest, options: RewindOptions): Promise<RewindOutcome> {
  const { log, actor, state } = parts
  const { to_seq: toSeq, files = false, conversation = true, end_processes: endsProcesses = false, force } = request
  await refuse(parts, request)
  if (files && force !== true) await options.others?.()
  const target = conversation ? await findTarget(log, state.current.rewound, toSeq) : undefined
  const isWhole = actor.runs.snapshots()?.mayBeChanging !== true
  // Nothing has ended yet if there is no such snapshot, or if it cannot be read.
  const plan = files ? await planFiles(parts, toSeq) : undefined
  if (plan && isWhole && force !== true) refuseChanged(plan)
  const { by, idempotency } = options
  const who = { ...(by !== undefined && { by }) }
  const once = { ...who, ...(idempotency && { idempotency }) }
  const closedWork = closedByRewind(state.current, toSeq)
  try {
    await stopAll(parts, conversation ? toSeq : log.head)
    const processes = await leftProcesses(parts)
    const processesLeft = await endShells(parts, endsProcesses ? processes : [])
    const restoreReport = files ? await restoreFiles(parts, request, isWhole) : undefined
    const storedEvents = []
    if (restoreReport) {
      const { snapshot_id, changed, removed, failed } = restoreReport
      const counts = { snapshot_id, changed: changed.length, removed: removed.length, failed: failed.length }
      const intent = { kind: 'files_restored', toSeq, restored: counts } as const
      storedEvents.push(...(await actor.apply({ ...intent, ...(target ? who : once) })))
    }
    if (target) {
      await parts.forgetEdits()
      storedEvents.push(
        ...(await actor.apply({
          kind: 'rewind',
          toSeq,
          target,
          closed: closedWork,
          processesLeft: processesLeft.length,
          ...once,
        })),
      )
    }
    return { ...outcomeOf(storedEvents.findLast(isOutcome)), ...(restoreReport && { files: restoreReport }), processes }
  } finally {
    // None is left, unless the rewind could not be stored.
    actor.subagents.current?.resume()
  }
}

/** What the agent has done since is rewound in any case. What somebody has sent is not lost without their knowledge. */
async function refuse(
  { log, state, compactions }: RewindParts,
  { to_seq, last_seq, files = false, conversation = true }: RewindRequest,
): Promise<void> {
  const newer = refuseNewer(state.current)
  if (newer) throw newer
  if (!files && !conversation) throw nothingToRewind()
  if (to_seq > log.head) throw cursorAhead('to_seq', to_seq, log.head)
  if (last_seq > log.head) throw cursorAhead('last_seq', last_seq, log.head)
  for await (const { events } of readPages(log, { afterSeq: last_seq, source: 'user', limit: 1 }))
    for (const { seq } of events) throw changedMeanwhile(last_seq, seq)
  if (!compactions.isIdle)
    throw new Problem('conversation_running', 'The conversation is being compacted; wait until that has ended.')
}

/** Ends the run, its tools, the subagents, and the background jobs that were posted after the event. */
async function stopAll({ actor, state }: Pick<RewindParts, 'actor' | 'state'>, toSeq: number): Promise<void> {
  const { runs } = actor
  await runs.stop(new Interrupt('a rewind'))
  await runs.interruptCalls()
  await actor.applyEnd(runs.intentToPause('rewound', true))
  for (const { id, type } of tasksBeyond(state.current, toSeq)) if (type !== 'AgentRun') await actor.tasks.cancelNow(id)
}

/** Commands of clients are theirs. */
async function leftProcesses({ exec }: Pick<RewindParts, 'exec'>): Promise<Process[]> {
  return (await exec.processes.list()).filter(({ command_id }) => command_id === undefined)
}

/** Ends the processes, and the shells with their state. A shell stays while a process or a command of it works. Returns the processes that are left. */
async function endShells(parts: Pick<RewindParts, 'exec'>, processes: readonly Process[]): Promise<readonly Process[]> {
  const { processes: running, shells } = parts.exec
  for (const { pid } of processes) await running.end(pid).catch(ignoreEnded)
  const usedSessions = new Set((await running.list()).map(({ session_id }) => session_id))
  for (const { id, status } of await shells.list())
    if (status !== 'busy' && !usedSessions.has(id)) await shells.end(id).catch(ignoreEnded)
  return await leftProcesses(parts)
}

/** It has ended meanwhile, or the agent is in a shell with a command that cannot be interrupted. */
function ignoreEnded(error: unknown): void {
  const codes: readonly unknown[] = ['process_not_found', 'session_not_found', 'session_busy']
  if (!(error instanceof Problem && codes.includes(error.code))) throw error
}

async function earlierOutcome(log: EventLog, seq: number): Promise<RewindOutcome> {
  const { events } = await log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })
  const event = events[0]?.event
  if (event && isOutcome(event)) return outcomeOf(event)
  throw new Problem('idempotency_mismatch', 'This Idempotency-Key was used for another request; use a new one.')
}

type OutcomeEvent = EventOf<'Rewound' | 'FilesRestored'>

const isOutcome = (event: Event): event is OutcomeEvent => event.type === 'Rewound' || event.type === 'FilesRestored'

const NOTHING: RewindOutcome['closed'] = { requests: [], tasks: [], subagents: [] }

function outcomeOf(event: OutcomeEvent | undefined): RewindOutcome {
  // A rewind of neither was refused.
  if (!event) throw nothingToRewind()
  const { id, seq, to_seq } = event
  return { event_id: id, seq, to_seq, closed: event.type === 'Rewound' ? event.closed : NOTHING }
}

const nothingToRewind = () =>
  new Problem('invalid_request', 'Neither files nor conversation is true: there is nothing to take back.')
