/**
 * One conversation: the actor that puts its commands in order and drives its runs. It decides nothing itself: what a
 * command leads to is in `commands.ts`, what the agent does is in `agent/loop.ts`, what holds afterwards in `state.ts`.
 */
import { partsOf } from '../contract/message.ts'
import type { ConversationView } from '../contract/conversation.ts'
import type { PostedMessage, PostMessage, RunOutcome, RunRequest } from '../contract/run.ts'
import type { Event, EventOf } from '../contract/events/event.ts'
import type { LlmConfig } from '../contract/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Llm } from '../llm/llm.ts'
import { Queue } from '../lib/queue.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { ToolCalls } from '../agent/tool-calls.ts'
import type { Idempotency, PostedKey } from './idempotency/idempotency.ts'
import { answerTo } from './idempotency/idempotency.ts'
import { postOnce } from './idempotency/posted-keys.ts'
import type { Decisions } from './approvals/decisions.ts'
import { createDecisions } from './approvals/decisions.ts'
import { waitForRun } from './runs/wait-for-run.ts'
import { ActiveRun } from './runs/active-run.ts'
import type { RunEnd } from './runs/active-run.ts'
import type { ClientEvents } from './client-events.ts'
import { createClientEvents } from './client-events.ts'
import type { Command, RecoveryReason } from './state/commands.ts'
import { decide } from './state/commands.ts'
import type { SecretsChange } from './config/secrets.ts'
import { redactLongParts } from './config/redact-parts.ts'
import type { State } from './state/state.ts'
import { fold } from './state/state.ts'
import type { RunTaskCommand } from './tasks/jobs.ts'
import { nextTasks, runningJobs } from './tasks/task-state.ts'
import type { Tasks } from './tasks/tasks.ts'
import { createTasks } from './tasks/tasks.ts'
import { UnstoredCommand } from './unstored-command.ts'
import { viewOf } from './state/view.ts'
import { whyClosed } from './why-closed.ts'

export type ConversationDeps = {
  readonly log: EventLog
  /** The fold of the log as it stands. */
  readonly state: State
  readonly slots: Queue
  readonly toolCalls: ToolCalls
  readonly redact: (text: string) => string
  readonly redactInSlices: (text: string) => Promise<string>
  readonly createLlm: (config: LlmConfig) => Llm
  readonly runTaskCommand: RunTaskCommand
  readonly logger: Logger
  /** Notes durably that a run is about to begin, or that none is under way any more. */
  readonly markActive: (active: boolean) => Promise<void>
  /** Told after each change worth showing in lists; never awaited. */
  readonly onChange: (state: State) => void
}

/** A change of the configuration: what the log tells of it, and what has to be done before and after. */
export type ConfigChange = {
  readonly changes: Record<string, unknown>
  readonly prepare?: () => Promise<void>
  readonly afterwards?: () => Promise<void>
}

export class Conversation {
  readonly log: EventLog
  /** What of the agent's calls waits for a user, and how it is decided. */
  readonly decisions: Decisions
  /** What clients have asked to be done, and follow by its id. */
  readonly tasks: Tasks
  readonly clientEvents: ClientEvents
  readonly #deps: ConversationDeps
  // Commands wait here for each other, never for the agent: the loop runs beside it and comes back only to end a run.
  readonly #inbox = new Queue({ limit: 1 })
  #state: State
  #active: ActiveRun | undefined
  /** What ends a run, or answers for one that was cut off: without it the run would never end. */
  readonly #unstored = new UnstoredCommand(() => this.#tryAgain())
  #hasRun = false
  #closed: Problem | undefined
  readonly #withoutTools = new Set<string>()

  constructor(deps: ConversationDeps) {
    this.#deps = deps
    this.log = deps.log
    this.#state = deps.state
    const parts = {
      ...deps,
      state: () => this.#state,
      inTurn: <T>(work: () => Promise<T>) => this.#command(work),
      carryOut: (command: Command) => this.#carryOut(command),
    }
    this.clientEvents = createClientEvents(parts)
    this.decisions = createDecisions(parts)
    this.tasks = createTasks({
      ...parts,
      endRun: (command) => this.#storeEnd(command),
      stopAgent: () => this.#stopAgent(),
      begunCalls: () => this.#begunCalls(),
      onError: (error) => (this.#closed ? undefined : this.#reportStorage(error)),
    })
    deps.log.subscribe({ onEvents: (events) => events.forEach((stored) => this.#take(stored.event)) })
  }

  get id(): string {
    return this.log.conversationId
  }

  /** The fold of the log: what may be noted elsewhere. */
  get state(): State {
    return this.#state
  }

  /** What clients see: a run that has ended is shown as ended, also while its end cannot be stored. */
  get #shown(): State {
    const isCutOff = this.#state.status === 'running' && (this.#unstored.kept !== undefined || this.failed)
    return isCutOff ? { ...this.#state, status: 'error', run: undefined } : this.#state
  }

  /** Whether something is done here, or is about to be, that a stop of the server would cut off. */
  get isWorking(): boolean {
    const hasTasks = runningJobs(this.#state).length > 0 || nextTasks(this.#state).length > 0
    return this.#state.status === 'running' || hasTasks
  }

  /** Whether nothing is done or left undone here that only this object knows. */
  get isAtRest(): boolean {
    const isBusy = this.isWorking || this.#active !== undefined || this.#unstored.kept !== undefined
    return !isBusy && !this.failed && this.#begunCalls().length === 0
  }

  /** Whether the log can't be trusted any more and has to be opened again. */
  get failed(): boolean {
    return this.log.failed
  }

  /** Whether a run began here: one that is `running` in the log is then none of another process. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  /** The same key and body again, within a day, is the same message: it is answered as it was, and posted once. */
  async post({ message, run }: PostMessage, idempotency?: Idempotency): Promise<PostedMessage> {
    const { log } = this
    const { redact } = this.#deps
    const make = async (): Promise<PostedMessage> => {
      const content = await redactLongParts(partsOf(message.content), this.#deps.redactInSlices)
      const sender = message.sender === undefined ? {} : { sender: this.#deps.redact(message.sender) }
      const ids = { begun: this.#begunCalls(), newRunId: uuid7() }
      const command = { kind: 'message', content, ...sender, run, ...ids, now: Date.now() } as const
      const events = await this.#carryOut({ ...command, ...(idempotency && { idempotency }) })
      return answerTo(events.find((event): event is EventOf<'UserMessage'> => event.type === 'UserMessage')!)
    }
    const again = async ({ answer }: PostedKey) => answer
    return await this.#command(() =>
      postOnce(idempotency, { log, redact, remembered: this.#state.postedKeys, again, make }),
    )
  }

  /** Starts a run and answers its id. */
  async run({ max_steps }: Pick<RunRequest, 'max_steps'> = {}): Promise<string> {
    return await this.#command(async () => {
      const newRunId = uuid7()
      await this.#carryOut({ kind: 'run', newRunId, ...(max_steps !== undefined && { maxSteps: max_steps }) })
      return newRunId
    })
  }

  /** Resolves when the run has ended or waits for somebody, and at the latest after `timeout` seconds. */
  async waitForRun(runId: string, timeout: number, signal: AbortSignal): Promise<RunOutcome> {
    const isOver = () => this.#shown.run?.id !== runId || this.#shown.status !== 'running'
    const watch = (onChange: () => void) => this.#unstored.watch(onChange)
    const result = await waitForRun(this.log, { runId, isOver, watch, timeoutMs: Math.ceil(timeout * 1000), signal })
    return { run_id: runId, status: this.#shown.status, ...(result && { result }) }
  }

  /**
   * Stops the run, if there is one. The model call ends at once; a tool goes on by itself, unless `interrupt` ends it.
   * `interrupt` also gives up the calls that have not begun; else they begin with the next run.
   */
  async pause({ interrupt, reason = 'pause' }: { interrupt: boolean; reason?: string }): Promise<State['status']> {
    return await this.#command(async () => {
      await this.#stopRun()
      if (interrupt) await this.#deps.toolCalls.interrupt()
      await this.#storeEnd(this.#pauseCommand(reason, interrupt))
      return this.#shown.status
    })
  }

  /** `plan` is made when it is this command's turn, against the state that holds then. */
  async configure(plan: (state: State) => Promise<ConfigChange>): Promise<void> {
    await this.#command(async () => {
      const { changes, prepare, afterwards } = await plan(this.#state)
      const refused = decide(this.#state, { kind: 'configure', changes })
      if (refused instanceof Problem) throw refused
      await prepare?.()
      await this.#carryOut({ kind: 'configure', changes })
      await afterwards?.()
    })
  }

  async setConfirmation(enabled: boolean): Promise<ConversationView> {
    await this.configure(async ({ settings }) => ({
      changes: (settings.confirmation_mode ?? false) === enabled ? {} : { confirmation_mode: enabled },
    }))
    return this.view()
  }

  /** `store` makes the change, in turn and durably; only then the log tells of it. */
  async changeSecrets(store: () => Promise<SecretsChange>): Promise<void> {
    await this.#command(async () => {
      await this.#carryOut({ kind: 'secrets', ...(await store()) })
    })
  }

  /**
   * Looks after what another process left half done, or this one before the log failed. What the disk does not take now
   * is stored later; until then the conversation can be read, and nothing else. Throws when the log failed.
   */
  async recover(why: RecoveryReason): Promise<void> {
    const command = { kind: 'recover', why, newRunId: uuid7(), now: Date.now() } as const
    await this.#command(async () => {
      try {
        await this.#carryOut(command)
      } catch (error) {
        if (this.failed || !(error instanceof Problem)) throw error
        this.#reportStorage(error)
        this.#unstored.keep(command)
      }
    })
  }

  /** Stores what could not be stored so far; throws when it still cannot be. */
  async settle(): Promise<void> {
    await this.#command(async () => {})
  }

  /** From now on the agent begins nothing: for what has to end before `close` can be called, and may take its time. */
  halt(): void {
    this.#active?.abort()
  }

  /** Ends the run, its tools and all readers; nothing of the conversation runs when this resolves. */
  async close(outcome: 'deleted' | 'closing'): Promise<void> {
    await this.#inbox.run(async () => {
      if (this.#closed) return
      this.#closed = whyClosed(outcome)
      this.#unstored.stop()
      await this.tasks.close()
      await this.#stopAgent()
      // What waits for somebody goes on waiting at the next start.
      const pauses = outcome === 'closing' && this.#state.status === 'running' && !this.failed
      const end = this.#unstored.kept ?? this.#pauseCommand('server_closing', true)
      if (pauses) await this.#carryOut(end).catch(this.#reportStorage)
      await this.log.close(outcome)
      // With what came since the last change that was worth telling.
      if (this.#state !== this.#deps.state) this.#deps.onChange(this.#state)
    })
  }

  view(): ConversationView {
    return viewOf(this.#shown)
  }

  #command<T>(task: () => Promise<T>): Promise<T> {
    return this.#inbox.run(async () => {
      if (this.#closed) throw this.#closed
      await this.#unstored.store((command) => this.#carryOut(command))
      try {
        return await task()
      } finally {
        await this.#advanceTasks()
      }
    })
  }

  /** What cannot be stored or started now is tried again later. */
  async #advanceTasks(): Promise<void> {
    if (this.#closed || this.failed || this.#unstored.kept) return
    await this.tasks.advance().catch((error: unknown) => {
      this.#reportStorage(error)
      // Of a damaged log nothing comes but the same again.
      if (!(error instanceof Problem && error.code === 'conversation_damaged')) this.#unstored.tryLater()
    })
  }

  /** The owner of this conversation opens a failed log again. */
  async #tryAgain(): Promise<void> {
    if (this.failed) return
    await this.settle().catch((error: unknown) => {
      this.#reportStorage(error)
      throw error
    })
  }

  /** Decides, stores, and does what the new state asks for. */
  async #carryOut(command: Command): Promise<readonly Event[]> {
    const drafts = decide(this.#state, command)
    if (drafts instanceof Problem) throw drafts
    if (!drafts.length) return []
    const starts = drafts.some((draft) => draft.type === 'StatusUpdate' && draft.status === 'running')
    const hasWork = starts || drafts.some((draft) => draft.type === 'TaskUpdate' && draft.status === 'pending')
    // Before the work is in the log: a start of the server opens only the logs that are marked.
    if (hasWork) await this.#deps.markActive(true)
    // Before it is known to be stored: a log that fails may hold it all the same.
    if (starts) this.#hasRun = true
    const events = (await this.log.append(drafts)).map((stored) => stored.event)
    if (starts) this.#startRun()
    // A mark too many costs the next start one look; a command that is in the log must not fail for it.
    else if (this.#isAtRest()) await this.#deps.markActive(false).catch(this.#reportStorage)
    return events
  }

  /** For what ends a run whose loop is still already. Throws what kept it from being stored. */
  async #storeEnd(command: Command): Promise<void> {
    try {
      await this.#carryOut(command)
    } catch (error) {
      if (this.#state.status === 'running') this.#unstored.keep(command)
      throw error
    }
  }

  /** Whether the next start of the server may leave this conversation alone. */
  #isAtRest(): boolean {
    const { reason, openCalls, settings } = this.#state
    const isCutOff = reason === 'server_closing' || (reason === 'server_restart' && settings.resume_on_start)
    return !this.isWorking && !isCutOff && !openCalls.length
  }

  /** Every durable event passes here, in order, before anyone else hears that it is stored. */
  #take(event: Event): void {
    this.#state = fold(this.#state, event)
    this.#active?.take(event)
    if (event.type === 'StatusUpdate' || event.type === 'ConfigUpdate' || event.type === 'UserMessage')
      this.#deps.onChange(this.#state)
  }

  #startRun(): void {
    const { slots, toolCalls, createLlm } = this.#deps
    const run = new ActiveRun({
      id: this.#state.run!.id,
      log: this.log,
      slots,
      toolCalls,
      createLlm,
      withoutTools: this.#withoutTools,
      state: () => this.#state,
      onEnd: (end) => this.#inbox.run(() => this.#endRun(run, end)),
      onError: this.#report,
    })
    this.#active = run
    run.start()
  }

  async #stopRun(): Promise<void> {
    await this.#active?.stop()
    this.#active = undefined
  }

  /** Its run and its tools, but for those that do not heed it. Returns the log's head at the last model request, 0 when there was none. */
  async #stopAgent(): Promise<number> {
    const requestedAt = this.#active?.requestedAt ?? 0
    await this.#stopRun()
    await this.#deps.toolCalls.interrupt()
    return requestedAt
  }

  /** The open calls whose result comes from their tool. While no run is at work, no other begins. */
  #begunCalls(): readonly string[] {
    const { toolCalls } = this.#deps
    return this.#state.openCalls.map((call) => call.toolUseId).filter((id) => toolCalls.hasBegun(id))
  }

  #pauseCommand(reason: string, interrupt: boolean): Command {
    return { kind: 'pause', reason, interrupt, begun: this.#begunCalls(), now: Date.now() }
  }

  /** Answers whether the run goes on. */
  async #endRun(run: ActiveRun, end: RunEnd): Promise<boolean> {
    if (this.#closed || this.#state.run?.id !== run.id || this.#state.status !== 'running') return false
    this.#active = undefined
    const command: Command =
      'asks' in end
        ? { kind: 'ask', runId: run.id, requestId: uuid7(), toolUses: end.asks }
        : { kind: 'end_run', runId: run.id, ...end, begun: this.#begunCalls(), newRunId: uuid7(), now: Date.now() }
    try {
      await this.#storeEnd(command)
    } catch (error) {
      this.#reportStorage(error)
      return false
    }
    if (this.#state.run?.id === run.id && this.#state.status === 'running') {
      this.#active = run
      return true
    }
    await this.#advanceTasks()
    return false
  }

  readonly #reportStorage = (error: unknown): void => {
    this.#deps.logger.error({ err: error, conversation_id: this.id }, 'an event could not be stored')
  }

  readonly #report = (error: unknown): void => {
    this.#deps.logger.error({ err: error, conversation_id: this.id }, 'a run failed')
  }
}
