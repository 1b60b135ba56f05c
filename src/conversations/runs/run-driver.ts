/** Starts and stops the runs of one conversation, one at a time. What a run's end leads to is decided by the actor. */
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Event } from '../../contract/events/event.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Intent } from '../state/intents.ts'
import type { ActiveRunDeps, RunEnd } from './active-run.ts'
import { ActiveRun } from './active-run.ts'

export type RunDriverDeps = Omit<ActiveRunDeps, 'id' | 'withoutTools'>

export class RunDriver {
  readonly #deps: RunDriverDeps
  readonly #toolCalls: ToolCalls
  /** Models of this conversation that were found to take no tools. */
  readonly #withoutTools = new Set<string>()
  #active: ActiveRun | undefined

  constructor(deps: RunDriverDeps) {
    this.#deps = deps
    this.#toolCalls = deps.toolCalls
  }

  get isActive(): boolean {
    return this.#active !== undefined
  }

  /** Starts the run that the state holds. */
  start(): void {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- only called after an event that began one
    const { id } = this.#deps.state.current.run!
    this.#active = new ActiveRun({ ...this.#deps, id, withoutTools: this.#withoutTools })
    this.#active.start()
  }

  /** A run that has come to its end is not stopped any more. */
  release(): void {
    this.#active = undefined
  }

  /** A run that continues after all can be stopped again. */
  resume(run: ActiveRun): void {
    this.#active = run
  }

  /** Each event of the conversation, as soon as it is durable. */
  take(event: Event): void {
    this.#active?.take(event)
  }

  /** Begins nothing more: neither a call nor a model request. */
  abort(): void {
    this.#active?.abort()
  }

  /** Resolves when the loop is still. The model call ends at once; a tool continues by itself. */
  async stop(): Promise<void> {
    await this.#active?.stop()
    this.#active = undefined
  }

  /**
   * Stops the run and its tools, except those that ignore it. Returns the log's head at the last model request, 0 when
   * there was none.
   */
  async stopAgent(): Promise<number> {
    const requestedAt = this.#active?.requestedAt ?? 0
    await this.stop()
    await this.#toolCalls.interrupt()
    return requestedAt
  }

  /** The open calls whose result comes from their tool. While no run works, no other begins. */
  begunCalls(): readonly string[] {
    return this.#deps.state.current.openCalls.map((call) => call.toolUseId).filter((id) => this.#toolCalls.hasBegun(id))
  }

  intentToEnd(run: ActiveRun, end: RunEnd): Intent {
    return 'asks' in end
      ? { kind: 'ask', runId: run.id, requestId: uuid7(), toolUses: end.asks }
      : { kind: 'end_run', runId: run.id, ...end, begun: this.begunCalls(), newRunId: uuid7(), now: Date.now() }
  }
}
