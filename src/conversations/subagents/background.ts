/**
 * The subagents of one conversation that work in the background: each takes a slot and works until it has ended, waits
 * for a decision, or is stopped.
 */
import type { Event, EventType } from '../../contract/events/event.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { sleepUnlessAborted } from '../../lib/bounded-wait.ts'
import type { CallOutcome } from '../../tools/tool.ts'
import type { LiveState } from '../live/live-state.ts'
import type { Subagent } from '../../state/state-shape.ts'
import { findSubagent, isBlocked } from '../../state/subagents.ts'
import { DecisionWaits } from './decision-waits.ts'
import type { AgentSlots, WorkOf } from './agent-slots.ts'

export type BackgroundDeps = {
  readonly state: LiveState
  readonly slots: () => AgentSlots
  /** None is started any more when it is aborted. */
  readonly leaving: AbortSignal | undefined
  /** Runs the subagent until it has ended or must wait. Rejects if an event could not be stored. */
  readonly follow: (subagent: Subagent, within: WorkOf) => Promise<CallOutcome>
  /** Stores the end. Rejects if it could not be stored. */
  readonly end: (toolUseId: string, outcome: CallOutcome, signal: AbortSignal) => Promise<void>
  readonly onError: (error: unknown) => void
}

const BACKOFF = { firstMs: 100, longestMs: 10_000 }

/** Events after which one may be able to work. */
const STARTS = new Set<EventType>(['SubagentStart', 'RequestAnswered', 'RequestClosed'])

type Work = { readonly abort: AbortController; readonly within: WorkOf; readonly done: Promise<void> }

export class BackgroundSubagents {
  readonly #deps: BackgroundDeps
  readonly #working = new Map<string, Work>()
  /** The subagents that a client ends: they are not started. */
  readonly #ending = new Map<string, Promise<void>>()
  #isHalted = false
  /** What their calls store when they end must not start them again before the state says that they are stopped. */
  #isStopped = false

  constructor(deps: BackgroundDeps) {
    this.#deps = deps
  }

  get areAny(): boolean {
    return this.#working.size > 0
  }

  /** Starts those that can work and do not yet, also after a stop. */
  resume(): void {
    this.#isStopped = false
    this.startAll()
  }

  /** Starts those that can work and do not yet. */
  startAll(): void {
    const { state, leaving } = this.#deps
    const { current } = state
    if (this.#isHalted || this.#isStopped || leaving?.aborted || current.status === 'paused') return
    for (const subagent of current.subagents) {
      const { isBackground, toolUseId } = subagent
      if (isBackground && this.#isFree(toolUseId) && !isBlocked(current, subagent)) this.#start(toolUseId)
    }
  }

  /** Call it after each change of the state, with the event. */
  take({ type }: Event): void {
    for (const { within } of this.#working.values()) within.waiting.check()
    if (type === 'StatusUpdate') this.resume()
    else if (STARTS.has(type)) this.startAll()
  }

  /** Stops one and calls `end`, which stores its end, while its loop does not work. A second call at the same time shares the first. */
  endOne(toolUseId: string, end: () => Promise<void>): Promise<void> {
    const knownEnding = this.#ending.get(toolUseId)
    if (knownEnding) return knownEnding
    const ending = this.#endOne(toolUseId, end).finally(() => {
      this.#ending.delete(toolUseId)
      this.startAll()
    })
    this.#ending.set(toolUseId, ending)
    return ending
  }

  /** Resolves when none works any more; a running tool continues. None is started before `resume`. */
  async stop(): Promise<void> {
    this.#isStopped = true
    const all = [...this.#working.values()]
    for (const { abort } of all) abort.abort()
    await Promise.all(all.map(({ done }) => done))
  }

  /** Stops all, and starts none any more. */
  halt(): void {
    this.#isHalted = true
    for (const { abort } of this.#working.values()) abort.abort()
  }

  async #endOne(toolUseId: string, end: () => Promise<void>): Promise<void> {
    const work = this.#working.get(toolUseId)
    work?.abort.abort()
    await work?.done
    await end()
  }

  #isFree(toolUseId: string): boolean {
    return !this.#working.has(toolUseId) && !this.#ending.has(toolUseId)
  }

  #start(toolUseId: string): void {
    const abort = new AbortController()
    const { signal } = abort
    const within = { signal, slots: this.#deps.slots(), waiting: new DecisionWaits() }
    const working = this.#work(toolUseId, within).finally(() => {
      this.#working.delete(toolUseId)
      // It may have been decided since it began to wait.
      if (!signal.aborted) this.startAll()
    })
    this.#working.set(toolUseId, { abort, within, done: working })
  }

  /** Tries again, with backoff, what could not be stored. Never rejects. */
  async #work(toolUseId: string, within: WorkOf): Promise<void> {
    const { state, follow, end, onError } = this.#deps
    const { signal } = within
    let outcome: CallOutcome | undefined
    // The events that begin it are acted on first.
    await Promise.resolve()
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        const subagent = findSubagent(state.current, toolUseId)
        if (!subagent) return
        outcome ??= await follow(subagent, within)
        return outcome.staysOpen ? undefined : await end(toolUseId, outcome, signal)
      } catch (error) {
        if (signal.aborted) return
        onError(error)
        await sleepUnlessAborted(backoffMs(attempt, BACKOFF), signal)
      }
    }
  }
}
