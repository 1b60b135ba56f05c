/**
 * Finds the snapshot that has the files of a moment. It is the last one before the moment, as long as each change of the agent
 * makes one: while none are taken, what it changes is in none, and the files of a moment then are perhaps those of the next one.
 */
import type { Event, EventDraft, EventOf } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import type { KnownSnapshot } from './prune-snapshots.ts'

type Log = Pick<EventLog, 'read' | 'head'>

/** Returns undefined if no snapshot has the files as they were after this event. `known`: all that were taken, in order. */
export async function findSnapshot(
  log: Log,
  known: readonly KnownSnapshot[],
  seq: number,
): Promise<KnownSnapshot | undefined> {
  if (known.length === 0) return undefined
  const before = known.findLast(({ asOf }) => asOf <= seq)
  const after = known.find(({ asOf }) => asOf > seq)
  const unseenSeqs = await findUnseenResults(log, before?.asOf ?? 0, after?.asOf ?? log.head)
  if (before && !unseenSeqs.some((unseen) => unseen <= seq)) return before
  return after && !unseenSeqs.some((unseen) => unseen > seq) ? after : undefined
}

const SETTINGS: ReadonlySet<string> = new Set(['SystemInit', 'ConfigUpdate'])
const CHANGING: ReadonlySet<string> = new Set([...SETTINGS, 'ToolResult', 'Result', 'StatusUpdate'])
const PAGE = { limit: 1000, maxBytes: 1024 * 1024 }

/** Returns the seqs of the results, between two snapshots, of calls whose changes no snapshot has. */
async function findUnseenResults(log: Log, afterSeq: number, throughSeq: number): Promise<readonly number[]> {
  const watch = new Watch()
  for await (const { events } of readPages(log, { types: SETTINGS, beforeSeq: afterSeq + 1, ...PAGE }))
    for (const { event } of events) watch.take(event)
  for await (const { events } of readPages(log, { types: CHANGING, afterSeq, beforeSeq: throughSeq + 1, ...PAGE }))
    for (const { event } of events) watch.take(event)
  return watch.unseenSeqs
}

class Watch {
  readonly unseenSeqs: number[] = []
  /** The results of the run so far, of which the next snapshot has the changes. */
  #results: number[] = []
  #isOn = false

  take(event: Event): void {
    switch (event.type) {
      case 'SystemInit':
        return this.#set(event.options_summary)
      case 'ConfigUpdate':
        return this.#set(event.changes)
      case 'ToolResult':
        return void (this.#isOn ? this.#results : this.unseenSeqs).push(event.seq)
      case 'Result':
        // Why a run was paused, the status says.
        if (event.parent_tool_use_id === undefined && event.stop_reason !== 'paused')
          this.#end(event.snapshot_failed === true || CUT_OFF.has(event.stop_reason))
        return undefined
      case 'StatusUpdate':
        if (event.status === 'paused') this.#end(event.reason === 'server_closing')
        return undefined
      default:
        return undefined
    }
  }

  #set({ file_checkpointing: isOn }: Readonly<Record<string, unknown>>): void {
    if (isOn !== undefined) this.#isOn = isOn === true
  }

  #end(isUnseen: boolean): void {
    if (isUnseen) this.unseenSeqs.push(...this.#results)
    this.#results = []
  }
}

/** The process has ended before it could take a snapshot. */
const CUT_OFF: ReadonlySet<string> = new Set(['server_restart', 'owner_lost'])

type TakenSnapshot = {
  readonly id: string
  readonly asOf: number
  readonly runId: string | undefined
  /** The commit of HEAD of the user's own repository. */
  readonly head: string | undefined
  readonly leftOut: EventOf<'WorkspaceSnapshot'>['left_out']
}

/** An event names no more paths than this. */
const MAX_LEFT_OUT = 100

/** The event by which the log knows a snapshot. */
export const draftOfSnapshot = ({ id, asOf, runId, head, leftOut }: TakenSnapshot): EventDraft => ({
  type: 'WorkspaceSnapshot',
  source: 'environment',
  ...(runId !== undefined && { run_id: runId }),
  snapshot_id: id,
  as_of_seq: asOf,
  ...(head !== undefined && { head_commit: head }),
  left_out: leftOut.slice(0, MAX_LEFT_OUT),
  ...(leftOut.length > MAX_LEFT_OUT && { left_out_count: leftOut.length }),
})
