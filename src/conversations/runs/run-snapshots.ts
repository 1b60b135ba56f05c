/**
 * Takes snapshots before the first call of a turn that may change something, while the model answers what such a turn
 * has led to, and at the end of the run. Turns that only read take none.
 */
import type { LoopSnapshots } from '../../agent/loop-context.ts'
import type { LoopEnd, LoopWait } from '../../agent/loop-end.ts'
import type { Event } from '../../contract/events/event.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import { findInLog } from '../../events/read-pages.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Subagent } from '../../state/state-shape.ts'
import { isBlocked, parentOf } from '../../state/subagents.ts'
import type { WorkspaceSnapshots } from '../../workspace/snapshots/snapshots.ts'
import type { LiveState } from '../live/live-state.ts'

export type RunSnapshotsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly gate: Pick<PermissionGate, 'hasParser' | 'loadParser' | 'mayChange'>
  readonly toolCalls: Pick<ToolCalls, 'callsSubagent'>
  readonly snapshots: () => WorkspaceSnapshots
  readonly limits: { readonly quota: Pick<DiskQuota, 'room'> | undefined }
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'snapshotTaken'>
}

/** Returns a function that makes them when the first run needs them. */
export function runSnapshotsOf(deps: () => RunSnapshotsDeps): () => RunSnapshots {
  let createdSnapshots: RunSnapshots | undefined
  return () => (createdSnapshots ??= new RunSnapshots(deps()))
}

/** A snapshot that was begun ahead. `began`: on the clock of `performance.now()`. */
type Look = { readonly taken: Promise<void>; readonly began: number; isOutdated: boolean }

/** A look that is older is taken again, in milliseconds. What a person changes by hand within that time may be missed. */
const FRESH_MS = 1000

/** The types of events that say nothing about files. */
const FILELESS_EVENTS: ReadonlySet<Event['type']> = new Set(['AssistantMessage', 'ToolUse', 'WorkspaceSnapshot'])

class RunSnapshots implements LoopSnapshots {
  readonly #deps: RunSnapshotsDeps
  #runId: string | undefined
  /** The turn that has its snapshot. */
  #turn = 0
  /** True if this process has seen all turns of the run. */
  #isWhole = false
  /** True if calls of this run have begun that may change something. */
  #hasChanged = false
  /** True from the begin of such calls until a snapshot has what they have changed. */
  #isChanging = false
  /** Seq of the last result of a subagent, and the one that the last snapshot has. Those in the background belong to no run. */
  readonly #subagents = { changed: 0, seen: 0 }
  /** Begun when the last such calls had ended. */
  #ahead: Look | undefined
  /** True after a failure in this run: the same would happen with each turn. */
  #isOff = false

  constructor(deps: RunSnapshotsDeps) {
    this.#deps = deps
  }

  readonly prepare = (): Promise<void> | undefined => {
    const { gate } = this.#deps
    return gate.hasParser ? undefined : gate.loadParser()
  }

  readonly before = (calls: readonly ToolCall[]): Promise<void> | undefined => {
    const { run } = this.#deps.state.current
    if (!run) return undefined
    this.#enter(run, run.steps <= 1)
    if (this.#turn === run.steps || this.#isOff || !this.#mayChange(calls)) return undefined
    this.#turn = run.steps
    return this.#takeBefore()
  }

  async #takeBefore(): Promise<void> {
    await this.#takeFresh()
    this.#hasChanged = true
    this.#isChanging = true
  }

  /** What was read ahead need not be read again; what has changed since must be. */
  async #takeFresh(): Promise<void> {
    const ahead = this.#ahead
    this.#ahead = undefined
    await ahead?.taken
    if (!ahead || ahead.isOutdated || performance.now() - ahead.began > FRESH_MS) await this.#take()
  }

  readonly ahead = (): void => {
    const { run } = this.#deps.state.current
    if (!run) return
    this.#enter(run, run.steps === 0)
    if (!this.#hasChanged || this.#isOff || this.#ahead?.isOutdated === false) return
    this.#ahead = { taken: this.#take(), began: performance.now(), isOutdated: false }
  }

  get mayBeChanging(): boolean {
    const { run, status } = this.#deps.state.current
    return (this.#isChanging && status === 'running' && this.#runId === run?.id) || this.#areSubagentsChanging()
  }

  /** True if calls of subagents have ended since the last snapshot, or work in the background. */
  #areSubagentsChanging(): boolean {
    const { current } = this.#deps.state
    const works = ({ agent }: Subagent) => agent.openCalls.length > 0
    const areWorking =
      current.status !== 'paused' && current.subagents.some((each) => works(each) && !isBlocked(current, each))
    return areWorking || this.#subagents.changed > this.#subagents.seen
  }

  readonly follow = (event: Event): void => {
    if (this.#ahead && !FILELESS_EVENTS.has(event.type)) this.#ahead.isOutdated = true
    if (event.type === 'ToolResult' && parentOf(event) !== undefined) this.#subagents.changed = event.seq
    const isPause = event.type === 'StatusUpdate' && event.status === 'paused' && event.reason !== 'server_closing'
    if (isPause) this.#rest(event.seq - 1)
    else if (event.type === 'ToolResult' && this.#deps.state.current.status === 'paused') this.#rest(event.seq)
  }

  /** The next turn takes another snapshot, of what somebody else has changed until then. */
  #rest(asOf?: number): void {
    this.#ahead = undefined
    if ((this.#hasChanged || this.#areSubagentsChanging()) && !this.#isOff) void this.#take(asOf)
  }

  readonly finish = async <T extends LoopEnd | LoopWait>(end: T): Promise<T | LoopEnd> => {
    const { run } = this.#deps.state.current
    if (!run) return end
    this.#enter(run, false)
    if (!this.#hasChanged) return end
    if (!('stopReason' in end)) this.#rest()
    if (!('stopReason' in end) || end.stopReason === 'paused') return end
    if (!this.#isOff) await this.#takeFresh()
    if (this.#isOff) return { ...end, snapshotFailed: true }
    try {
      const snapshots = this.#deps.snapshots()
      const changes = await snapshots.changesSince(run.startSeq)
      // No snapshot depends on the removal, which may end during the next run.
      snapshots.prune(run.startSeq).catch((error: unknown) => this.#warn(error, NOT_REMOVED))
      return changes ? { ...end, changes } : end
    } catch (error) {
      this.#fail(error, run.id)
      return end
    }
  }

  /** `isFirst`: the run has had no turn before. What subagents in the background change counts as changed by the run. */
  #enter({ id }: { readonly id: string }, isFirst: boolean): void {
    if (this.#runId !== id) this.#begin(id, isFirst)
    if (this.#areSubagentsChanging()) this.#hasChanged = true
  }

  #begin(id: string, isFirst: boolean): void {
    this.#runId = id
    this.#turn = 0
    this.#isWhole = isFirst
    this.#hasChanged = false
    this.#isChanging = false
    this.#isOff = false
    this.#ahead = undefined
  }

  #mayChange(calls: readonly ToolCall[]): boolean {
    const { gate, toolCalls } = this.#deps
    return calls.some((call) => toolCalls.callsSubagent(call.name) || gate.mayChange(call))
  }

  async #take(knownSeq?: number): Promise<void> {
    const { state, snapshots, metrics, limits } = this.#deps
    const began = performance.now()
    const runId = this.#runId
    const { changed } = this.#subagents
    try {
      const { run, lastSeq } = state.current
      // What has changed between two runs was there before the message that the run began with.
      const asOf = knownSeq ?? (this.#isWhole && !this.#hasChanged ? await this.#lastEnd() : lastSeq)
      if ((await limits.quota?.room()) === 0) throw new Error(NO_ROOM)
      await snapshots().take(asOf, run?.id)
      this.#isChanging = false
      this.#subagents.seen = changed
      metrics.snapshotTaken('taken', performance.now() - began)
    } catch (error) {
      metrics.snapshotTaken('failed', performance.now() - began)
      this.#fail(error, runId)
    }
  }

  /** Seq of the end of the run before, or of a rewind since then, or 0. */
  async #lastEnd(): Promise<number> {
    const { log } = this.#deps
    const types = new Set(['Result', 'Rewound', 'FilesRestored'])
    return (await findInLog(log, { types, order: 'desc', limit: 1 }, ({ seq }) => seq)) ?? 0
  }

  /** `runId`: the run that the snapshot was begun in. The next one may have begun meanwhile. */
  #fail(error: unknown, runId: string | undefined): void {
    if (runId === this.#runId) this.#isOff = true
    this.#warn(error, 'no snapshot of the workdir could be taken')
  }

  #warn(error: unknown, what: string): void {
    const { logger, log } = this.#deps
    logger.warn({ err: error, conversation_id: log.conversationId }, what)
  }
}

const NOT_REMOVED = 'snapshots that are not kept any more could not be removed'

const NO_ROOM = 'the conversation has reached its disk limit, for which snapshots count; DELETE snapshots makes room'
