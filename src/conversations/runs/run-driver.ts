/**
 * The life of a run of the main agent. A conversation has one at a time; `subagents.ts` has the runs below it. The loop
 * runs outside the conversation's inbox; the run enters the inbox only to end. The actor decides what follows from that.
 *
 *                 start              slot given             the loop ends            end stored
 *     no run ───────────────▶ queued ──────────▶ working ─────────────────▶ ending ──────────────▶ no run
 *                               │                 │   ▲                        │
 *                               │                 │   └────────────────────────┘
 *                               │ stop, abort     │ stop, abort    the state says that it continues
 *                               ▼                 ▼
 *                              stopped: its end is stored by the caller that stopped it
 *
 * - `queued`: the limit of concurrent runs is reached; the log shows it. With a free slot it works at once.
 * - `working`: it has a slot. It lends it to its subagents, and gives it back while it only waits for a form. The time limit counts.
 * - `ending`: its end is being stored in the turn of the conversation. It cannot be stopped, as a stop would have to wait
 *   for that turn. It continues if calls may run without an answer, because hooks have decided them, for example.
 */
import type { LoopEnd, LoopWait } from '../../agent/loop-end.ts'
import { timeLimit } from '../../agent/model/loop-ends.ts'
import type { AgentContext } from '../../agent/loop-context.ts'
import { runAgent } from '../../agent/loop.ts'
import { SentMessages } from '../../agent/model/sent-messages.ts'
import type { Event } from '../../contract/events/event.ts'
import { QUEUED } from '../../contract/events/status.ts'
import type { EventLog } from '../../events/event-log.ts'
import { MAX_TIMER_MS, timerMs } from '../../lib/bounded-wait.ts'
import type { Queue, SlotRequest } from '../../lib/queue.ts'
import { Interrupt } from '../../llm/llm.ts'
import { toDequeued, toQueued } from '../../state/drafts.ts'
import type { HandOverIntent } from '../../state/hand-over.ts'
import type { Intent } from '../../state/intents.ts'
import { workedMs } from '../../state/run-state.ts'
import { LiveHistory } from '../agents/live-history.ts'
import type { WorkingSlot } from '../agents/working-slot.ts'
import type { Feature } from '../agents/feature.ts'
import type { Subagents } from '../subagents/subagents.ts'
import { createRunContext, failureOf, intentToEnd, intentToRest } from './run-context.ts'
import type { RunContextParts, RunEnd } from './run-context.ts'

export type RunDriverDeps = RunContextParts & {
  readonly slots: Queue
  /** `enter`: see `UsedSubagents`. */
  readonly subagents: Pick<Feature<Subagents>, 'current'> & { enter(slot: WorkingSlot): void }
  /** Calls `RunDriver.end` in turn, and returns its result. Not called for a run that was stopped. */
  readonly onEnd: (run: ActiveRun, end: RunEnd) => Promise<boolean>
  readonly onError: (error: unknown) => void
  /** What has outlived its call, and ends when the conversation is closed. */
  readonly runningShells: () => Promise<HandOverIntent['running']>
}

type OfAgent = { readonly history: LiveHistory; readonly sent: SentMessages }

export class RunDriver {
  readonly #deps: RunDriverDeps
  readonly #history = new LiveHistory()
  /** What withdrawals of messages must wait for, and the other way round. */
  readonly sent: SentMessages
  /** `queued` or `working`. */
  #active: ActiveRun | undefined
  #ending: ActiveRun | undefined
  readonly snapshots: RunDriverDeps['snapshots']

  constructor(deps: RunDriverDeps) {
    this.#deps = deps
    this.snapshots = deps.snapshots
    this.sent = new SentMessages(() => deps.state.current.lastSeq)
  }

  get isActive(): boolean {
    return this.#active !== undefined
  }

  /** False also for a run that another process continues, and for one that waits for a slot: another one can take it. */
  isWorking = (): boolean => {
    const run = this.#active ?? this.#ending
    return run?.isOver === false && !run.isQueued
  }

  /** Starts the run in the state. */
  start(): void {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- only called after an event that began one
    const { id } = this.#deps.state.current.run!
    this.sent.through = 0
    this.#active = new ActiveRun(id, { ...this.#deps, history: this.#history, sent: this.sent })
    this.#ending = undefined
    this.#active.drive().catch(this.#deps.onError)
  }

  /** True if the state has the run, and it has not ended. */
  isRunning({ id }: ActiveRun): boolean {
    const { status, run } = this.#deps.state.current
    return status === 'running' && run?.id === id
  }

  /** Stores the end, in turn only. Returns true if the run continues. Rejects as `store` does. */
  async end(run: ActiveRun, end: RunEnd, store: (intent: Intent) => Promise<unknown>): Promise<boolean> {
    this.#active = undefined
    this.#ending = run
    await store(intentToEnd(run.id, end, this.begunCalls()))
    if (!this.isRunning(run)) return false
    this.#active = run
    this.#ending = undefined
    return true
  }

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#history.take(event)
    if (this.#deps.state.current.settings.file_checkpointing) this.snapshots()?.follow(event)
    if (event.type === 'ConfigUpdate') (this.#active ?? this.#ending)?.watchDeadline()
  }

  /** Starts no further call or model request. `stop` must follow. */
  abort(): void {
    this.#active?.abort()
    this.#deps.subagents.current?.halt()
  }

  /** The last event that a model request of the active run contains; 0 if no run is active, or it has made no request. */
  get sentThrough(): number {
    return this.#active ? this.sent.through : 0
  }

  /** Resolves when the loop of the run has stopped; subagents in the background continue. */
  async stopRun(reason?: Interrupt): Promise<void> {
    await this.#active?.stop(reason)
    this.#active = undefined
  }

  /** Resolves when all loops have stopped; a running tool continues. An `Interrupt` stores the text of the model so far. */
  async stop(reason?: Interrupt): Promise<void> {
    await this.stopRun(reason)
    // This follows the run: that it waits for a slot may be stored only now, and lets those in the background work.
    await this.#deps.subagents.current?.stop()
  }

  /**
   * Stops the run and its tools, except tools that ignore the signal. Returns the log's head at the last model request,
   * or 0 if there was none.
   */
  async stopAgent(reason?: Interrupt): Promise<number> {
    const requestedAt = this.#active?.requestedAt ?? 0
    await this.stop(reason)
    await this.interruptCalls()
    return requestedAt
  }

  /** Ends the running calls, also those of subagents; see `ToolCalls.interrupt`. */
  readonly interruptCalls = (): Promise<unknown> =>
    Promise.all([this.#deps.toolCalls.interrupt(), this.#deps.subagents.current?.interrupt()])

  /** The open calls that have begun: their tool writes the result. While no run is active, no other call begins. */
  begunCalls(): readonly string[] {
    const { state, toolCalls, subagents } = this.#deps
    const own = state.current.openCalls.map((call) => call.toolUseId).filter((id) => toolCalls.hasBegun(id))
    return [...own, ...(subagents.current?.begunCalls() ?? [])]
  }

  /** Stores the results of calls that could not be stored before. Rejects if they still cannot be. */
  readonly storeResults = (): Promise<unknown> =>
    Promise.all([this.#deps.toolCalls.storeResults(), this.#deps.subagents.current?.storeResults()])

  intentToPause(reason: string, interrupt: boolean): Intent {
    const hasHooks = this.#deps.hooks.current?.forLoop() !== undefined
    return { kind: 'pause', reason, interrupt, begun: this.begunCalls(), now: Date.now(), hasHooks }
  }

  /** Undefined if no run is active. */
  async intentToClose(): Promise<Intent | undefined> {
    const { leaving, runningShells, state } = this.#deps
    if (leaving?.aborted) return { kind: 'hand_over', begun: this.begunCalls(), running: await runningShells() }
    if (state.current.status !== 'running') return undefined
    return intentToRest(state.current) ?? this.intentToPause('server_closing', true)
  }
}

const TIME_LIMIT = new Interrupt('the time limit')

export class ActiveRun {
  readonly id: string
  readonly #deps: RunDriverDeps & OfAgent
  readonly #abort = new AbortController()
  /**
   * A time of `performance.now()`, because the wall clock may jump. Shifted back by the time the run had worked before
   * it waited.
   */
  #startedAt = 0
  #context: Promise<AgentContext> | undefined
  #deadline: NodeJS.Timeout | undefined
  #looping: Promise<unknown> = Promise.resolve()
  isOver = false
  /** It has no slot yet. */
  isQueued = true
  /** The log's head at the last model request, or 0 if there was none. */
  requestedAt = 0

  constructor(id: string, deps: RunDriverDeps & OfAgent) {
    this.id = id
    this.#deps = deps
  }

  readonly abort = (reason?: Interrupt): void => this.#abort.abort(reason)

  /** Does not wait for the stored end: that would wait for the inbox, whose turn the caller has. */
  async stop(reason?: Interrupt): Promise<void> {
    this.abort(reason)
    await this.#looping
  }

  /** Drives the run from the beginning to the end. Rejects as `onEnd` does. */
  async drive(): Promise<void> {
    const { signal } = this.#abort
    const { slots, toolCalls: calls } = this.#deps
    const slot: WorkingSlot = { slots, signal, calls, request: slots.take({ signal }) }
    try {
      const waiting = this.#waitFor(slot.request)
      this.#looping = waiting
      let failure = await waiting
      this.isQueued = false
      this.#deps.subagents.enter(slot)
      const { current } = this.#deps.state
      this.#startedAt = performance.now() - (current.run?.steps ? workedMs(current) : 0)
      this.watchDeadline()
      for (;;) {
        const looping = failure ? Promise.resolve(failure) : this.#loopOnce()
        failure = undefined
        this.#looping = looping
        const end = await looping
        if (!end) return // another process continues
        if (signal.aborted && signal.reason !== TIME_LIMIT) return // the caller that stopped the run stores its end
        if (await this.#deps.onEnd(this, { ...end, requestedAt: this.requestedAt })) continue
        if ('permissionCalls' in end) this.#deps.hooks.current?.notifyOf(end.permissionCalls)
        return
      }
    } finally {
      clearTimeout(this.#deadline)
      this.#context = undefined // it may still be referenced
      this.#startedAt = 0
      this.isOver = slot.isOver = true
      slot.request.leave()
    }
  }

  /** The log shows that this run waits for a slot. Never throws: a failed append ends the run. */
  async #waitFor(slot: SlotRequest): Promise<LoopEnd | undefined> {
    const { log, state } = this.#deps
    // The log may say that it waits, if another process has left it.
    if (slot.isFree && state.current.reason !== QUEUED) return undefined
    try {
      if (!slot.isFree) await log.append([toQueued(state.current)])
      if (await slot.entry) await log.append([toDequeued(state.current)])
      return undefined
    } catch (error) {
      return this.#failure(error)
    }
  }

  /** Loops once. Never throws: an error ends the run as `error`. */
  async #loopOnce(): Promise<LoopEnd | LoopWait | undefined> {
    const { signal } = this.#abort
    const { log } = this.#deps
    try {
      const context = await (this.#context ??= createRunContext(this.#deps, this, signal))
      const emit = async (drafts: Parameters<EventLog['append']>[0]) => void (await log.append(drafts))
      const end = await runAgent(context, { emit, publish: (draft) => log.publish(draft) }, signal)
      const stop = signal.reason === TIME_LIMIT ? timeLimit() : end
      return context.snapshots && stop ? await context.snapshots.finish(stop) : stop
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) return this.#failure(error)
      return error === TIME_LIMIT ? timeLimit() : { stopReason: 'paused' }
    }
  }

  /** Call it in the tick in which a model request is built. */
  readonly onRequest = (): number => {
    this.#deps.sent.mark()
    return (this.requestedAt = this.#deps.state.current.lastSeq)
  }

  #failure(error: unknown): LoopEnd {
    this.#deps.onError(error)
    return failureOf(error)
  }

  /** Rearms after each change of the limit, and if the deadline was beyond the longest timer. */
  watchDeadline(): void {
    clearTimeout(this.#deadline)
    // The time limit does not count while the run is queued.
    if (this.#startedAt === 0) return
    const seconds = this.#deps.state.current.settings.max_seconds_per_run
    if (seconds === undefined) return
    const restMs = this.#startedAt + seconds * 1000 - performance.now()
    const endForTime = () => {
      this.#abort.abort(TIME_LIMIT)
      this.#deps.toolCalls.interrupt().catch(this.#deps.onError)
    }
    this.#deadline = setTimeout(restMs > MAX_TIMER_MS ? () => this.watchDeadline() : endForTime, timerMs(restMs))
  }
}
