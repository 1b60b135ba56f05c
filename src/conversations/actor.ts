/**
 * Runs the intents of one conversation one at a time, stores their events, and drives runs. It decides nothing itself:
 * `state/intents.ts` decides what an intent leads to, `agent/loop.ts` what the agent does, `state/state.ts` the state.
 */
import type { Event, EventDraft } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import type { StoredEvent } from '../events/event-store.ts'
import { Queue } from '../lib/queue.ts'
import { Interrupt } from '../llm/llm.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Logger } from '../telemetry/logger.ts'
import { closedProblem } from '../events/closed-problem.ts'
import type { CallResults } from './live/call-results.ts'
import { Feature } from './agents/feature.ts'
import { endLate } from './end-late.ts'
import type { ConfigChange } from './live/inbox.ts'
import { RunDriver, type ActiveRun, type RunDriverDeps } from './runs/run-driver.ts'
import type { RunEnd } from './runs/run-context.ts'
import { decide, type Intent } from '../state/intents.ts'
import type { LiveState } from './live/live-state.ts'
import { leavesWork, type RecoveryReason } from '../state/run-end.ts'
import { requireReadableChange } from '../state/settings.ts'
import type { State } from '../state/state.ts'
import { changesLists } from '../state/view.ts'
import { areInBackground, canWorkInBackground } from '../state/subagents.ts'
import type { RunTaskCommand } from './tasks/background-jobs.ts'
import { hasJobs, runningJobs } from '../state/task-state.ts'
import { Tasks } from './tasks/tasks.ts'
import { UnstoredIntent } from './unstored-intent.ts'

export type ActorDeps = Omit<RunDriverDeps, 'onEnd' | 'onError'> & {
  readonly results: CallResults
  readonly redact: (text: string) => string
  readonly runTaskCommand: RunTaskCommand
  readonly logger: Logger
  /** Records durably that a run is about to begin, or that none is active any more. */
  readonly markActive: (active: boolean) => Promise<void>
  /** Called after each change that lists show; never awaited. */
  readonly onChange: (state: State) => void
}

export class ConversationActor {
  readonly #deps: ActorDeps
  readonly #log: EventLog
  readonly #state: LiveState
  readonly #openedWith: State
  readonly runs: RunDriver
  readonly subagents: ActorDeps['subagents']
  /** The actor starts them when it is their turn. */
  readonly #tasks: Feature<Tasks>
  // Intents wait in this queue for each other, never for the agent: its loop enters the queue only to end a run.
  readonly #inbox = new Queue({ limit: 1 })
  /** The intent that ends or recovers a run while it cannot be stored: without it the run would never end. */
  readonly #unstored = new UnstoredIntent(() => this.#tryAgain())
  /** True if a run began in this process: a run that is `running` in the log then belongs to no other process. */
  hasRun = false
  #closed: Problem | undefined

  constructor(deps: ActorDeps) {
    this.#deps = deps
    this.#log = deps.log
    this.#state = deps.state
    this.#openedWith = deps.state.current
    this.subagents = deps.subagents
    this.runs = new RunDriver({
      ...deps,
      onEnd: (run, end) => this.#inbox.run(() => this.#endRun(run, end)),
      onError: (error) => this.reportStorage(error, 'a run failed'),
    })
    const hasTasks = () => this.#state.current.tasks.length > 0
    this.#tasks = new Feature(() => new Tasks({ ...deps, actor: this }), hasTasks)
    deps.log.subscribe({ onEvents: (events) => this.#take(events) })
  }

  /** The background jobs that clients have queued and follow by id. */
  get tasks(): Tasks {
    return this.#tasks.use()
  }

  /** The state that clients see: a run that has ended is shown as ended, even while its end cannot be stored yet. */
  get shown(): State {
    const state = this.#state.current
    const isCutOff = state.status === 'running' && (this.#unstored.intent !== undefined || this.#log.failed)
    return isCutOff ? { ...state, status: 'error', run: undefined } : state
  }

  /** True if work is active or about to begin that a server shutdown would interrupt. */
  get isWorking(): boolean {
    const state = this.#state.current
    const hasWork = state.status === 'running' || (state.tasks.length > 0 && hasJobs(state))
    return hasWork || this.subagents.current?.areInBackground === true
  }

  /** True if nothing is active or pending that only this object knows about. */
  get isAtRest(): boolean {
    const isBusy = this.isWorking || this.runs.isActive || this.#unstored.intent
    return !isBusy && !this.#log.failed && !canWorkInBackground(this.#state.current) && this.begunCalls().length === 0
  }

  /** True between two steps: nothing runs that the end of this process would cut off. */
  get canLeave(): boolean {
    const works = this.runs.isWorking() || this.subagents.current?.areInBackground
    return !works && this.begunCalls().length === 0 && runningJobs(this.#state.current).length === 0
  }

  /** Queues the work and runs it in turn. Rejects with the `Problem` of a closed conversation. */
  enqueue<T>(work: () => Promise<T>): Promise<T> {
    return this.#inbox.run(async () => {
      if (this.#closed) throw this.#closed
      if (this.#unstored.intent) await this.#unstored.forgetAfter(this.#applyLast(this.#unstored.intent))
      try {
        return await work()
      } finally {
        await this.#advanceTasks()
      }
    })
  }

  /** Decides, stores the events, and acts on the new state; in turn only. Throws a `Problem` if it is refused. */
  async apply(intent: Intent): Promise<readonly Event[]> {
    return await this.#deps.results.decide(() => decide(this.#state.current, intent), this.#store)
  }

  readonly #store = async (drafts: readonly EventDraft[]): Promise<readonly Event[]> => {
    if (!drafts.length) return []
    const starts = drafts.some((draft) => draft.type === 'StatusUpdate' && draft.status === 'running')
    const hasWork = starts || drafts.some((draft) => bringsWork(draft, this.#state.current))
    // Mark before the events are in the log: at startup the server opens only the marked logs.
    if (hasWork) await this.#deps.markActive(true)
    // Set this before the append is known to have succeeded: a log that fails may still contain the events.
    if (starts) this.hasRun = true
    const events = (await this.#log.append(drafts, { isForClient: true })).map((storedEvent) => storedEvent.event)
    if (starts) this.runs.start()
    // An unnecessary mark costs one look at the next start; an intent that is in the log must not fail because of it.
    else if (!this.isWorking && !leavesWork(this.#state.current))
      await this.#deps.markActive(false).catch(this.reportStorage)
    return events
  }

  /** Applies the end of a stopped run: if it cannot be stored now, it is stored later. Call it in turn only. */
  async applyEnd(intent: Intent): Promise<readonly Event[]> {
    try {
      return await this.#applyLast(intent)
    } catch (error) {
      if (this.#state.current.status === 'running') this.#unstored.keep(intent)
      throw error
    }
  }

  /** The results that could not be stored come before the end of the run: an agent at rest has one for each of its calls. */
  async #applyLast(intent: Intent | undefined): Promise<readonly Event[]> {
    await this.runs.storeResults()
    return intent ? await this.apply(intent) : []
  }

  /**
   * Stops the active run, if any. The model call ends at once; a running tool continues. `interrupt` ends it too, cancels
   * the calls that have not begun, which otherwise begin with the next run, and stores the text so far.
   */
  async pause({ interrupt, reason }: { interrupt: boolean; reason: string }): Promise<void> {
    await this.enqueue(async () => {
      await this.runs.stop(interrupt ? new Interrupt('a pause') : undefined)
      if (interrupt) await this.runs.interruptCalls()
      const storing = this.applyEnd(this.runs.intentToPause(reason, interrupt))
      // The state holds them back unless it could not be stored.
      await storing.finally(() => this.subagents.current?.resume())
      const intent = () => this.runs.intentToPause(reason, true)
      if (interrupt) endLate({ ...this.#deps, actor: this, intent, onError: this.reportUnlessClosed })
    })
  }

  async configure(plan: (state: State) => Promise<ConfigChange>): Promise<void> {
    await this.enqueue(async () => {
      const { changes, before, after } = await plan(this.#state.current)
      const refusal = decide(this.#state.current, { kind: 'configure', changes })
      if (refusal instanceof Problem) throw refusal
      requireReadableChange(this.#state.current.settings, changes)
      await before?.()
      await this.apply({ kind: 'configure', changes })
      await after?.()
    })
  }

  /**
   * Recovers what another process, or this one before the log failed, left unfinished. Events that cannot be stored now
   * are stored later; until then the conversation is read-only. Throws if the log failed. Without a reason nothing was cut off.
   */
  async recover(why: RecoveryReason | undefined): Promise<void> {
    if (!why) return await this.#continue()
    const intent = { kind: 'recover', why, newRunId: uuid7(), now: Date.now() } as const
    await this.enqueue(async () => {
      try {
        await this.apply(intent)
      } catch (error) {
        if (this.#log.failed || !(error instanceof Problem)) throw error
        this.reportStorage(error)
        this.#unstored.keep(intent)
      }
    })
    this.subagents.current?.resume()
  }

  /** Continues what another process has left between two steps. Once something begins, the next one must recover it. */
  async #continue(): Promise<void> {
    const isRunning = this.#state.current.status === 'running'
    if (isRunning || canWorkInBackground(this.#state.current)) await this.#deps.markActive(true)
    if (isRunning) this.runs.start()
    this.hasRun ||= isRunning
    this.subagents.current?.resume()
  }

  /** Stores the pending intent; throws if it still cannot be stored. */
  settle = (): Promise<void> => this.enqueue(async () => {})

  /** Calls `onKept` when the end of a run could not be stored. Returns an unsubscribe function. */
  readonly watchUnstored = (onKept: () => void): (() => void) => this.#unstored.watch(onKept)

  /** Starts no new agent work from now on. Call it before slow cleanup that must finish before `close`. */
  readonly halt = (): void => this.runs.abort()

  /** Ends the run, its tools and all readers; nothing of the conversation runs after this resolves. */
  async close(outcome: 'deleted' | 'closing'): Promise<void> {
    await this.#inbox.run(async () => {
      if (this.#closed) return
      this.#closed = closedProblem(outcome)
      this.#unstored.stop()
      await this.#tasks.built?.close()
      await this.runs.stopAgent()
      // Pending approvals and questions stay pending and continue after the next start.
      const end = this.#unstored.intent ?? (await this.runs.intentToClose())
      if (outcome === 'closing' && !this.#log.failed) await this.#applyLast(end).catch(this.reportStorage)
      await this.#log.close(outcome)
      // Reports the changes since the last `onChange`.
      if (this.#state.current !== this.#openedWith) this.#deps.onChange(this.#state.current)
    })
  }

  /** The open calls that have begun: their tool writes the result. */
  readonly begunCalls = (): readonly string[] => this.runs.begunCalls()

  /** Stops the run and its tools, in turn only. Returns the log's head at the last model request, or 0. */
  readonly stopAgent = (): Promise<number> => this.runs.stopAgent(new Interrupt('a cancellation'))

  /** Logs that an event could not be stored. If the conversation is closed, that is expected and not logged. */
  readonly reportUnlessClosed = (error: unknown): void => {
    if (!this.#closed) this.reportStorage(error)
  }

  readonly reportStorage = (error: unknown, what = 'an event could not be stored'): void =>
    this.#deps.logger.error({ err: error, conversation_id: this.#log.conversationId }, what)

  /** Receives every durable event, in order, after the state has been updated and before any other reader. */
  #take(events: readonly StoredEvent[]): void {
    let isShown = false
    for (const { event } of events) {
      this.runs.take(event)
      this.subagents.current?.take(event)
      isShown ||= changesLists(event)
    }
    if (isShown) this.#deps.onChange(this.#state.current)
  }

  /** Retries later if storing or starting fails now. */
  async #advanceTasks(): Promise<void> {
    if (this.#closed || this.#log.failed || this.#unstored.intent) return
    await this.#tasks.current?.advance().catch((error: unknown) => {
      this.reportStorage(error)
      // A damaged log gives the same error on every attempt.
      if (!(error instanceof Problem && error.code === 'conversation_damaged')) this.#unstored.tryLater()
    })
  }

  /** Asks the owner of this conversation to reopen a failed log. */
  async #tryAgain(): Promise<void> {
    if (this.#log.failed) return
    await this.settle().catch((error: unknown) => {
      this.reportStorage(error)
      throw error
    })
  }

  /** Returns true if the run continues. */
  async #endRun(run: ActiveRun, end: RunEnd): Promise<boolean> {
    if (this.#closed || !this.runs.isRunning(run)) return false
    try {
      if (await this.runs.end(run, end, (intent) => this.applyEnd(intent))) return true
      await this.#advanceTasks()
    } catch (error) {
      this.reportStorage(error)
    }
    return false
  }
}

/** A task waits for its turn; with an answer, a subagent in the background may continue. */
function bringsWork(draft: EventDraft, state: State): boolean {
  if (draft.type === 'TaskUpdate') return draft.status === 'pending'
  return (draft.type === 'RequestAnswered' || draft.type === 'RequestClosed') && areInBackground(state)
}
