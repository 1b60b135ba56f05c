/**
 * The actor of one conversation: puts intents in order, stores what they lead to, and drives runs. It decides nothing
 * itself: `state/intents.ts` says what an intent leads to, `agent/loop.ts` what the agent does, `state/state.ts` what
 * holds afterwards.
 */
import type { Event } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import type { StoredEvent } from '../events/event-store.ts'
import { Queue } from '../lib/queue.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { ToolCalls } from '../agent/tool-calls.ts'
import { closedProblem } from './closed-problem.ts'
import type { ActiveRun, RunEnd } from './runs/active-run.ts'
import type { RunDriverDeps } from './runs/run-driver.ts'
import { RunDriver } from './runs/run-driver.ts'
import type { Intent } from './state/intents.ts'
import { decide } from './state/intents.ts'
import type { LiveState } from './state/live-state.ts'
import type { RecoveryReason } from './state/run-end.ts'
import type { State } from './state/state.ts'
import type { RunTaskCommand } from './tasks/background-jobs.ts'
import { nextTasks, runningJobs } from './tasks/task-state.ts'
import { Tasks } from './tasks/tasks.ts'
import { UnstoredIntent } from './unstored-intent.ts'

export type ActorDeps = Pick<RunDriverDeps, 'slots' | 'createLlm'> & {
  readonly log: EventLog
  readonly state: LiveState
  readonly toolCalls: ToolCalls
  readonly redact: (text: string) => string
  readonly runTaskCommand: RunTaskCommand
  readonly logger: Logger
  /** Notes durably that a run is about to begin, or that none is under way any more. */
  readonly markActive: (active: boolean) => Promise<void>
  /** Called after each change worth showing in lists; never awaited. */
  readonly onChange: (state: State) => void
}

/** A change of the configuration: what the log has of it, and what is done before and after it is stored. */
export type ConfigChange = {
  readonly changes: Record<string, unknown>
  readonly before?: () => Promise<void>
  readonly after?: () => Promise<void>
}

export class ConversationActor {
  /** What clients have asked to be done, and follow by its id. The actor starts them when their turn has come. */
  readonly tasks: Tasks
  readonly #deps: ActorDeps
  readonly #log: EventLog
  readonly #state: LiveState
  readonly #openedWith: State
  readonly #runs: RunDriver
  // Intents wait here for each other, never for the agent: the loop runs beside it and comes back only to end a run.
  readonly #inbox = new Queue({ limit: 1 })
  /** What ends a run, or answers for one that was cut off: without it the run would never end. */
  readonly #unstored = new UnstoredIntent(() => this.#tryAgain())
  #hasRun = false
  #closed: Problem | undefined

  constructor(deps: ActorDeps) {
    this.#deps = deps
    this.#log = deps.log
    this.#state = deps.state
    this.#openedWith = deps.state.current
    this.#runs = new RunDriver({
      ...deps,
      onEnd: (run, end) => this.#inbox.run(() => this.#endRun(run, end)),
      onError: (error) => this.#report(error, 'a run failed'),
    })
    this.tasks = new Tasks({ ...deps, actor: this })
    deps.log.subscribe({ onEvents: (events) => this.#take(events) })
  }

  /** What clients see: a run that has ended is shown as ended, also while its end cannot be stored. */
  get shown(): State {
    const state = this.#state.current
    const isCutOff = state.status === 'running' && (this.#unstored.kept !== undefined || this.#log.failed)
    return isCutOff ? { ...state, status: 'error', run: undefined } : state
  }

  /** Whether something is done here, or is about to be, that a stop of the server would cut off. */
  get isWorking(): boolean {
    const state = this.#state.current
    return state.status === 'running' || runningJobs(state).length > 0 || nextTasks(state).length > 0
  }

  /** Whether nothing is done or left undone here that only this object knows. */
  get isAtRest(): boolean {
    const isBusy = this.isWorking || this.#runs.isActive || this.#unstored.kept !== undefined
    return !isBusy && !this.#log.failed && this.begunCalls().length === 0
  }

  /** Whether a run began here: one that is `running` in the log then belongs to no other process. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  /** Runs the work when its turn has come. Rejects with the `Problem` of a closed conversation. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#inbox.run(async () => {
      if (this.#closed) throw this.#closed
      await this.#unstored.store((intent) => this.apply(intent))
      try {
        return await work()
      } finally {
        await this.#advanceTasks()
      }
    })
  }

  /** Decides, stores, and does what the new state asks for. In turn only. Throws the `Problem` of an intent that is refused. */
  async apply(intent: Intent): Promise<readonly Event[]> {
    const drafts = decide(this.#state.current, intent)
    if (drafts instanceof Problem) throw drafts
    if (!drafts.length) return []
    const starts = drafts.some((draft) => draft.type === 'StatusUpdate' && draft.status === 'running')
    const hasWork = starts || drafts.some((draft) => draft.type === 'TaskUpdate' && draft.status === 'pending')
    // Before the work is in the log: a start of the server opens only the logs that are marked.
    if (hasWork) await this.#deps.markActive(true)
    // Before it is known to be stored: a log that fails may hold it all the same.
    if (starts) this.#hasRun = true
    const events = (await this.#log.append(drafts)).map((stored) => stored.event)
    if (starts) this.#runs.start()
    // A mark too many costs the next start one look; an intent that is in the log must not fail for it.
    else if (this.#needsNoRecovery()) await this.#deps.markActive(false).catch(this.reportStorage)
    return events
  }

  /** As `apply`, for what ends a run whose loop is still: what cannot be stored now is kept and stored later. In turn only. */
  async applyEnd(intent: Intent): Promise<void> {
    try {
      await this.apply(intent)
    } catch (error) {
      if (this.#state.current.status === 'running') this.#unstored.keep(intent)
      throw error
    }
  }

  /**
   * Stops the run, if there is one. The model call ends at once; a tool continues by itself, unless `interrupt` ends it.
   * `interrupt` also gives up the calls that have not begun; else they begin with the next run.
   */
  async pause({ interrupt, reason }: { interrupt: boolean; reason: string }): Promise<void> {
    await this.inTurn(async () => {
      await this.#runs.stop()
      if (interrupt) await this.#deps.toolCalls.interrupt()
      await this.applyEnd(this.#pauseIntent(reason, interrupt))
    })
  }

  /** `plan` is made when it is its turn, from the state at that time. */
  async configure(plan: (state: State) => Promise<ConfigChange>): Promise<void> {
    await this.inTurn(async () => {
      const { changes, before, after } = await plan(this.#state.current)
      const refused = decide(this.#state.current, { kind: 'configure', changes })
      if (refused instanceof Problem) throw refused
      await before?.()
      await this.apply({ kind: 'configure', changes })
      await after?.()
    })
  }

  /**
   * Answers what another process left half done, or this one before the log failed. What the disk does not take now is
   * stored later; until then the conversation can only be read. Throws when the log failed.
   */
  async recover(why: RecoveryReason): Promise<void> {
    const intent = { kind: 'recover', why, newRunId: uuid7(), now: Date.now() } as const
    await this.inTurn(async () => {
      try {
        await this.apply(intent)
      } catch (error) {
        if (this.#log.failed || !(error instanceof Problem)) throw error
        this.reportStorage(error)
        this.#unstored.keep(intent)
      }
    })
  }

  /** Stores what could not be stored so far; throws when it still cannot be. */
  async settle(): Promise<void> {
    await this.inTurn(async () => {})
  }

  /** Calls `onKept` when the end of a run could not be stored. Returns how to stop. */
  watchUnstored(onKept: () => void): () => void {
    return this.#unstored.watch(onKept)
  }

  /** From now on the agent begins nothing: for what has to end before `close` can be called, and may take its time. */
  halt(): void {
    this.#runs.abort()
  }

  /** Ends the run, its tools and all readers; nothing of the conversation runs when this resolves. */
  async close(outcome: 'deleted' | 'closing'): Promise<void> {
    await this.#inbox.run(async () => {
      if (this.#closed) return
      this.#closed = closedProblem(outcome)
      this.#unstored.stop()
      await this.tasks.close()
      await this.#runs.stopAgent()
      // What waits for somebody keeps waiting at the next start.
      const pauses = outcome === 'closing' && this.#state.current.status === 'running' && !this.#log.failed
      const end = this.#unstored.kept ?? this.#pauseIntent('server_closing', true)
      if (pauses) await this.apply(end).catch(this.reportStorage)
      await this.#log.close(outcome)
      // With what came since the last change that was worth showing.
      if (this.#state.current !== this.#openedWith) this.#deps.onChange(this.#state.current)
    })
  }

  /** The open calls whose result comes from their tool. */
  begunCalls(): readonly string[] {
    return this.#runs.begunCalls()
  }

  /** Stops the run and its tools, in turn only. Returns the log's head at the last model request, 0 when there was none. */
  async stopAgent(): Promise<number> {
    return await this.#runs.stopAgent()
  }

  /** Logs that an event could not be stored. Of a closed conversation that is expected. */
  readonly reportUnlessClosed = (error: unknown): void => {
    if (!this.#closed) this.reportStorage(error)
  }

  readonly reportStorage = (error: unknown): void => this.#report(error, 'an event could not be stored')

  #report(error: unknown, what: string): void {
    this.#deps.logger.error({ err: error, conversation_id: this.#log.conversationId }, what)
  }

  /** Every durable event passes here, in order, after the state and before any other reader. */
  #take(events: readonly StoredEvent[]): void {
    let isShown = false
    for (const { event } of events) {
      this.#runs.take(event)
      isShown ||= event.type === 'StatusUpdate' || event.type === 'ConfigUpdate' || event.type === 'UserMessage'
    }
    if (isShown) this.#deps.onChange(this.#state.current)
  }

  /** What cannot be stored or started now is tried again later. */
  async #advanceTasks(): Promise<void> {
    if (this.#closed || this.#log.failed || this.#unstored.kept) return
    await this.tasks.advance().catch((error: unknown) => {
      this.reportStorage(error)
      // A damaged log gives the same error every time.
      if (!(error instanceof Problem && error.code === 'conversation_damaged')) this.#unstored.tryLater()
    })
  }

  /** The owner of this conversation opens a failed log again. */
  async #tryAgain(): Promise<void> {
    if (this.#log.failed) return
    await this.settle().catch((error: unknown) => {
      this.reportStorage(error)
      throw error
    })
  }

  /** Whether the next start of the server may leave this conversation alone. */
  #needsNoRecovery(): boolean {
    const { reason, openCalls, settings } = this.#state.current
    const isCutOff = reason === 'server_closing' || (reason === 'server_restart' && settings.resume_on_start)
    return !this.isWorking && !isCutOff && !openCalls.length
  }

  #pauseIntent(reason: string, interrupt: boolean): Intent {
    return { kind: 'pause', reason, interrupt, begun: this.begunCalls(), now: Date.now() }
  }

  /** Returns whether the run continues. */
  async #endRun(run: ActiveRun, end: RunEnd): Promise<boolean> {
    if (this.#closed || !this.#isUnderWay(run)) return false
    this.#runs.release()
    try {
      await this.applyEnd(this.#runs.intentToEnd(run, end))
    } catch (error) {
      this.reportStorage(error)
      return false
    }
    if (this.#isUnderWay(run)) {
      this.#runs.resume(run)
      return true
    }
    await this.#advanceTasks()
    return false
  }

  #isUnderWay(run: ActiveRun): boolean {
    const { status, run: current } = this.#state.current
    return status === 'running' && current?.id === run.id
  }
}
