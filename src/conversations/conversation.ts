/**
 * One conversation: the actor that puts its commands in order and drives its runs. It decides nothing itself: what a
 * command leads to is in `commands.ts`, what the agent does is in `agent/loop.ts`, what holds afterwards in `state.ts`.
 */
import { partsOf } from '../contract/message.ts'
import type { Conversation as ConversationView, PostedMessage, PostMessage, RunOutcome, RunRequest } from '../contract/conversation.ts'
import type { Event, EventDraft, EventOf, TransientDraft } from '../contract/event.ts'
import type { LlmConfig } from '../contract/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Llm } from '../llm/llm.ts'
import { createSerial } from '../lib/serial.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { History } from '../agent/history.ts'
import { createHistory } from '../agent/history.ts'
import type { AgentContext, LoopEnd } from '../agent/loop.ts'
import { runAgent, timeLimit } from '../agent/loop.ts'
import type { ToolCalls } from '../agent/tool-calls.ts'
import type { Command } from './commands.ts'
import { decide } from './commands.ts'
import { redactParts } from './redact-parts.ts'
import type { State } from './state.ts'
import { fold } from './state.ts'

export type ConversationDeps = {
  readonly log: EventLog
  /** The fold of the log as it stands. */
  readonly state: State
  readonly toolCalls: ToolCalls
  readonly redact: (text: string) => string
  readonly createLlm: (config: LlmConfig) => Llm
  readonly logger: Logger
  /** Notes durably that a run is about to begin, or that none is under way any more. */
  readonly markActive: (active: boolean) => Promise<void>
  /** Told after each change worth showing in lists; never awaited. */
  readonly onChange: (state: State) => void
}

/** A change of the configuration: what the log tells of it, and what has to be done before and after. */
export type ConfigChange = {
  readonly changes: Record<string, unknown>
  readonly prepare: () => Promise<void>
  readonly afterwards: () => Promise<void>
}

/** A run that is under way. `looping` settles when the loop itself is still, before its end is in the log. */
type ActiveRun = {
  readonly id: string
  readonly maxSteps: number | undefined
  readonly abort: AbortController
  /** By `performance.now()`: the wall clock may jump. */
  readonly startedAt: number
  deadline: NodeJS.Timeout | undefined
  looping: Promise<unknown>
}

/** Events read at a time when the model's history is rebuilt. */
const HISTORY_PAGE = 1000

/** Timers reach no further, milliseconds: about 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

export class Conversation {
  readonly log: EventLog
  readonly #deps: ConversationDeps
  // Commands wait here for each other, never for the agent: the loop runs beside it and comes back only to end a run.
  readonly #inbox = createSerial()
  #state: State
  #active: ActiveRun | undefined
  /** Present during a run only: an idle conversation holds no messages in memory. */
  #history: Pick<History, 'add'> | undefined
  /** The end of a run that could not be stored; it comes before anything else once there is room, or the run would never end. */
  #unstoredEnd: Command | undefined
  #closed: Problem | undefined
  readonly #withoutTools = new Set<string>()

  constructor(deps: ConversationDeps) {
    this.#deps = deps
    this.log = deps.log
    this.#state = deps.state
    deps.log.subscribe({ onEvents: (events) => events.forEach((stored) => this.#take(stored.event)) })
  }

  get id(): string {
    return this.log.conversationId
  }

  get state(): State {
    return this.#unstoredEnd ? { ...this.#state, status: 'error', run: undefined } : this.#state
  }

  /** Whether the log can't be trusted any more and has to be opened anew. */
  get failed(): boolean {
    return this.log.failed
  }

  async post({ message, run }: PostMessage): Promise<PostedMessage> {
    return await this.#command(async () => {
      const content = redactParts(partsOf(message.content), this.#deps.redact)
      const sender = message.sender === undefined ? {} : { sender: this.#deps.redact(message.sender) }
      const events = await this.#carryOut({ kind: 'message', content, ...sender, run, newRunId: uuid7() })
      const posted = events.find((event): event is EventOf<'UserMessage'> => event.type === 'UserMessage')!
      const runId = this.#state.status === 'running' ? this.#state.run?.id : undefined
      return { event_id: posted.id, seq: posted.seq, ...(run && runId !== undefined && { run_id: runId }) }
    })
  }

  /** Starts a run and answers its id. */
  async run({ max_steps }: Pick<RunRequest, 'max_steps'> = {}): Promise<string> {
    return await this.#command(async () => {
      const newRunId = uuid7()
      await this.#carryOut({ kind: 'run', newRunId }, max_steps)
      return newRunId
    })
  }

  /** Resolves when the run has ended or waits for somebody, and at the latest after `timeout` seconds. */
  async waitForRun(runId: string, timeout: number, signal: AbortSignal): Promise<RunOutcome> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const giveUp = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(timeout * 1000))])
    // An abort that came before is not told to who listens now.
    if (giveUp.aborted) resolve()
    giveUp.addEventListener('abort', () => resolve(), { once: true })
    let result: EventOf<'Result'> | undefined
    const unsubscribe = this.log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) if (event.type === 'Result' && event.run_id === runId) result = event
        if (this.#state.run?.id !== runId || this.#state.status !== 'running') resolve()
      },
      onClose: () => resolve(),
    })
    try {
      if (this.#state.run?.id !== runId) {
        // It ended before we came to listen.
        const page = await this.log.read({ types: new Set(['Result']), order: 'desc', limit: 1 })
        const last = page.events[0]?.event
        if (last?.type === 'Result' && last.run_id === runId) result = last
      } else await promise
      return { run_id: runId, status: this.state.status, ...(result && { result }) }
    } finally {
      unsubscribe()
    }
  }

  /** Stops the run, if there is one. The model call ends at once; a tool goes on by itself, unless `interrupt` ends it. */
  async pause({ interrupt, reason = 'pause' }: { interrupt: boolean; reason?: string }): Promise<State['status']> {
    return await this.#command(async () => {
      await this.#stopLoop()
      if (interrupt) await this.#deps.toolCalls.interrupt()
      await this.#storeEnd({ kind: 'pause', reason, now: Date.now() })
      return this.state.status
    })
  }

  /** `plan` is made when it is this command's turn, against the state that holds then. */
  async configure(plan: (state: State) => Promise<ConfigChange>): Promise<void> {
    await this.#command(async () => {
      const { changes, prepare, afterwards } = await plan(this.#state)
      const refused = decide(this.#state, { kind: 'configure', changes })
      if (refused instanceof Problem) throw refused
      await prepare()
      await this.#carryOut({ kind: 'configure', changes })
      await afterwards()
    })
  }

  /** Looks after what another process left half done. */
  async recover(): Promise<void> {
    await this.#command(() => this.#carryOut({ kind: 'recover', now: Date.now() }))
  }

  /** Ends the run, its tools and all readers; nothing of the conversation runs when this resolves. */
  async close(outcome: 'deleted' | 'closing'): Promise<void> {
    await this.#inbox(async () => {
      if (this.#closed) return
      this.#closed =
        outcome === 'deleted'
          ? new Problem('conversation_deleted', 'The conversation has been deleted.')
          : new Problem('unavailable', 'The server is stopping; try again when it is up.')
      await this.#stopLoop()
      await this.#deps.toolCalls.interrupt()
      // What waits for somebody goes on waiting at the next start.
      const pauses = outcome === 'closing' && this.#state.status === 'running' && !this.failed
      if (pauses) await this.#carryOut({ kind: 'pause', reason: 'server_closing', now: Date.now() }).catch(this.#reportStorage)
      await this.log.close(outcome)
    })
  }

  view(): ConversationView {
    return viewOf(this.state)
  }

  #command<T>(task: () => Promise<T>): Promise<T> {
    return this.#inbox(async () => {
      if (this.#closed) throw this.#closed
      if (this.#unstoredEnd) {
        await this.#carryOut(this.#unstoredEnd)
        this.#unstoredEnd = undefined
      }
      return await task()
    })
  }

  /** Decides, stores, and does what the new state asks for. */
  async #carryOut(command: Command, maxSteps?: number): Promise<readonly Event[]> {
    const drafts = decide(this.#state, command)
    if (drafts instanceof Problem) throw drafts
    if (!drafts.length) return []
    const starts = drafts.some((draft) => draft.type === 'StatusUpdate' && draft.status === 'running')
    // Before the run is in the log: a start of the server opens only the logs that are marked.
    if (starts) await this.#deps.markActive(true)
    const events = (await this.log.append(drafts)).map((stored) => stored.event)
    if (starts) this.#startLoop(maxSteps)
    // A mark too many costs the next start one look; a command that is in the log must not fail for it.
    else if (this.#isAtRest()) await this.#deps.markActive(false).catch(this.#reportStorage)
    return events
  }

  /** For what ends a run whose loop is still already. Throws what kept it from being stored. */
  async #storeEnd(command: Command): Promise<void> {
    try {
      await this.#carryOut(command)
    } catch (error) {
      if (this.#state.status === 'running') this.#unstoredEnd = command
      throw error
    }
  }

  /** Whether the next start of the server may leave this conversation alone. */
  #isAtRest(): boolean {
    const { status, reason, openCalls } = this.#state
    return status !== 'running' && reason !== 'server_closing' && !openCalls.length
  }

  /** Every durable event passes here, in order, before anyone else hears that it is stored. */
  #take(event: Event): void {
    this.#state = fold(this.#state, event)
    this.#history?.add(event)
    if (event.type === 'ConfigUpdate' && this.#active) this.#watchDeadline(this.#active)
    if (event.type === 'StatusUpdate' || event.type === 'ConfigUpdate' || event.type === 'UserMessage') this.#deps.onChange(this.#state)
  }

  #startLoop(maxSteps: number | undefined): void {
    const active: ActiveRun = {
      id: this.#state.run!.id,
      maxSteps,
      abort: new AbortController(),
      startedAt: performance.now(),
      deadline: undefined,
      looping: Promise.resolve(),
    }
    this.#active = active
    this.#drive(active).catch(this.#report)
  }

  async #stopLoop(): Promise<void> {
    this.#active?.abort.abort()
    // Only until the loop is still, not until its end is stored: that would wait for this very inbox.
    await this.#active?.looping
    this.#active = undefined
  }

  async #drive(active: ActiveRun): Promise<void> {
    const { signal } = active.abort
    this.#watchDeadline(active)
    let requestedAt = 0
    const onRequest = () => void (requestedAt = this.#state.lastSeq)
    let context: Promise<AgentContext> | undefined
    const contextOfRun = () => (context ??= this.#createContext(active, onRequest))
    try {
      for (;;) {
        const run = this.#loopOnce(contextOfRun, signal)
        active.looping = run
        const end = await run
        if (signal.aborted && signal.reason !== TIME_LIMIT) return // whoever stopped it stores what follows
        if (!(await this.#inbox(() => this.#endRun(active, end, requestedAt)))) return
      }
    } finally {
      clearTimeout(active.deadline)
      if (this.#active === active || !this.#active) this.#history = undefined
      if (this.#active === active) this.#active = undefined
    }
  }

  /** Never throws: what goes wrong ends the run as an error. */
  async #loopOnce(context: () => Promise<AgentContext>, signal: AbortSignal): Promise<LoopEnd> {
    try {
      const end = await runAgent(await context(), { emit: this.#emit, publish: this.#publish }, signal)
      return signal.reason === TIME_LIMIT ? timeLimit() : end
    } catch (error) {
      this.#report(error)
      const message = error instanceof Problem ? error.message : 'The server failed inside the run; its log has the details.'
      return { stopReason: 'error', failure: { type: 'internal', message, retryable: true } }
    }
  }

  /** Answers whether the run goes on. */
  async #endRun(active: ActiveRun, end: LoopEnd, requestedAt: number): Promise<boolean> {
    if (this.#closed || this.#state.run?.id !== active.id || this.#state.status !== 'running') return false
    const command: Command = { kind: 'end_run', runId: active.id, ...end, requestedAt, newRunId: uuid7(), now: Date.now() }
    this.#active = undefined
    try {
      await this.#storeEnd(command)
    } catch (error) {
      this.#reportStorage(error)
      return false
    }
    if (this.#state.run?.id !== active.id) return false
    this.#active = active
    return true
  }

  async #createContext(active: ActiveRun, onRequest: () => void): Promise<AgentContext> {
    const history = await this.#loadHistory()
    let llm: { readonly for: LlmConfig; readonly instance: Llm } | undefined
    return {
      runId: active.id,
      history,
      toolCalls: this.#deps.toolCalls,
      redact: this.#deps.redact,
      // Made anew when the configuration has changed, so that a change holds from the next step on.
      llm: async () => {
        const config = this.#state.settings.llm_config
        if (llm?.for !== config) llm = { for: config, instance: this.#deps.createLlm(config) }
        return llm.instance
      },
      openCalls: () => this.#state.openCalls,
      withoutTools: this.#withoutTools,
      steps: () => this.#state.run?.steps ?? 0,
      limits: () => ({ maxSteps: active.maxSteps, maxIterations: this.#state.settings.max_iteration_per_run }),
      onRequest,
    }
  }

  async #loadHistory(): Promise<History> {
    const history = createHistory((name, output) => this.#deps.toolCalls.render(name, output))
    // What is appended while the log is read comes after it.
    const meanwhile: Event[] = []
    this.#history = { add: (event) => meanwhile.push(event) }
    const head = this.log.head
    for (let seq = 0; seq < head; ) {
      const page = await this.log.read({ afterSeq: seq, beforeSeq: head + 1, limit: HISTORY_PAGE })
      for (const { event } of page.events) history.add(event)
      seq = page.events.at(-1)?.seq ?? head
    }
    // The head may have been a step ahead of what subscribers had been told.
    for (const event of meanwhile) if (event.seq > head) history.add(event)
    this.#history = history
    return history
  }

  /** Again after each change of the limit, and when the last timer did not reach so far. */
  #watchDeadline(active: ActiveRun): void {
    clearTimeout(active.deadline)
    const seconds = this.#state.settings.max_seconds_per_run
    if (seconds === undefined) return
    const left = active.startedAt + seconds * 1000 - performance.now()
    const next = left > MAX_TIMER_MS ? () => this.#watchDeadline(active) : () => this.#endForTime(active)
    active.deadline = setTimeout(next, Math.min(left, MAX_TIMER_MS))
  }

  #endForTime(active: ActiveRun): void {
    active.abort.abort(TIME_LIMIT)
    this.#deps.toolCalls.interrupt().catch(this.#reportStorage)
  }

  readonly #emit = async (drafts: readonly EventDraft[]): Promise<void> => {
    await this.log.append(drafts)
  }

  readonly #publish = (draft: TransientDraft): void => this.log.publish(draft)

  readonly #reportStorage = (error: unknown): void => {
    this.#deps.logger.error({ err: error, conversation_id: this.id }, 'an event could not be stored')
  }

  readonly #report = (error: unknown): void => {
    this.#deps.logger.error({ err: error, conversation_id: this.id }, 'a run failed')
  }
}

const TIME_LIMIT = Symbol('time limit')

/** A conversation as it is told to clients. */
export function viewOf(state: State): ConversationView {
  const { settings } = state
  return {
    id: state.id,
    ...(settings.title !== undefined && { title: settings.title }),
    ...(settings.user_id !== undefined && { user_id: settings.user_id }),
    ...(settings.metadata && { metadata: settings.metadata }),
    workdir: settings.workdir,
    llm_config: settings.llm_config,
    tools: settings.tools,
    max_iteration_per_run: settings.max_iteration_per_run,
    ...(settings.max_seconds_per_run !== undefined && { max_seconds_per_run: settings.max_seconds_per_run }),
    state: {
      id: state.id,
      agent_finished: state.status === 'finished',
      confirmation_mode: false,
      agent_waiting_for_confirmation: state.status === 'waiting_for_confirmation',
      agent_paused: state.status === 'paused',
      event_count: state.lastSeq,
      activated_knowledge_microagents: settings.microagents ?? [],
    },
    status: state.status,
    last_seq: state.lastSeq,
    usage: state.usage,
    ...(state.costUsd !== undefined && { cost_usd: state.costUsd }),
    created_at: state.createdAt,
    updated_at: state.updatedAt,
  }
}
