/** Starts and stops the runs of one conversation, one at a time. The actor decides what follows from a run's end. */
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Event } from '../../contract/events/event.ts'
import type { Interrupt } from '../../llm/llm.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { atRest } from '../../state/cut-off.ts'
import type { Intent } from '../../state/intents.ts'
import { statusOfWait } from '../../state/waits.ts'
import type { ActiveRunDeps, RunEnd } from './active-run.ts'
import { ActiveRun } from './active-run.ts'
import { LiveHistory } from '../agents/live-history.ts'

export type RunDriverDeps = Omit<ActiveRunDeps, 'id' | 'history'>

export class RunDriver {
  readonly #deps: RunDriverDeps
  readonly #toolCalls: ToolCalls
  readonly #history = new LiveHistory()
  #active: ActiveRun | undefined
  /** A run whose end is being stored; it may continue with the events of that end. */
  #ending: ActiveRun | undefined

  constructor(deps: RunDriverDeps) {
    this.#deps = deps
    this.#toolCalls = deps.toolCalls
  }

  get isActive(): boolean {
    return this.#active !== undefined
  }

  /** Starts the run in the state. */
  start(): void {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- only called after an event that began one
    const { id } = this.#deps.state.current.run!
    this.#active = new ActiveRun({ ...this.#deps, id, history: this.#history })
    this.#ending = undefined
    this.#active.start()
  }

  /** Makes a run that has ended unstoppable. */
  release(): void {
    this.#ending = this.#active
    this.#active = undefined
  }

  /** Makes a run that continues after all stoppable again. */
  resume(run: ActiveRun): void {
    this.#active = run
    this.#ending = undefined
  }

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#history.take(event)
    if (event.type === 'ConfigUpdate') (this.#active ?? this.#ending)?.watchDeadline()
  }

  /** Starts no further call or model request. */
  abort(): void {
    this.#active?.abort()
    this.#deps.subagents.current?.halt()
  }

  /** Resolves when all loops have stopped. The model calls end at once; a running tool continues. See `ActiveRun.abort`. */
  async stop(reason?: Interrupt): Promise<void> {
    await this.#active?.stop(reason)
    // After the run: that it waits for a slot may be stored only now, and lets those in the background work.
    await this.#deps.subagents.current?.stop()
    this.#active = undefined
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
  async interruptCalls(): Promise<void> {
    await Promise.all([this.#toolCalls.interrupt(), this.#deps.subagents.current?.interrupt()])
  }

  /** The open calls that have begun: their tool writes the result. While no run is active, no other call begins. */
  begunCalls(): readonly string[] {
    const { state, subagents } = this.#deps
    const own = state.current.openCalls.map((call) => call.toolUseId).filter((id) => this.#toolCalls.hasBegun(id))
    return [...own, ...(subagents.current?.begunCalls() ?? [])]
  }

  /** Stores the results of calls that could not be stored before. Rejects if they still cannot be. */
  async storeResults(): Promise<void> {
    await Promise.all([this.#toolCalls.storeResults(), this.#deps.subagents.current?.storeResults()])
  }

  intentToPause(reason: string, interrupt: boolean): Intent {
    const hasHooks = this.#deps.hooks.current?.forLoop() !== undefined
    return { kind: 'pause', reason, interrupt, begun: this.begunCalls(), now: Date.now(), hasHooks }
  }

  /**
   * What only waits for somebody waits on after the next start; what works next to it is cut off, as by a kill. Undefined if
   * no run is active.
   */
  intentToClose(): Intent | undefined {
    const { current } = this.#deps.state
    if (current.status !== 'running') return undefined
    if (current.run && statusOfWait(current)) return { kind: 'await_outside', runId: current.run.id }
    if (atRest(current).subagents.length > 0)
      return { kind: 'recover', why: 'server_restart', newRunId: uuid7(), now: Date.now() }
    return this.intentToPause('server_closing', true)
  }

  intentToEnd(run: ActiveRun, end: RunEnd): Intent {
    const runId = run.id
    if ('asks' in end) return { kind: 'ask', runId, requestId: uuid7(), toolUses: end.asks, hooked: end.hooked }
    if ('waitsOutside' in end) return { kind: 'await_outside', runId }
    if ('asking' in end)
      return { kind: 'ask_user', runId, asking: end.asking.map((call) => ({ ...call, questionId: uuid7() })) }
    return { kind: 'end_run', runId, ...end, begun: this.begunCalls(), newRunId: uuid7(), now: Date.now() }
  }
}
