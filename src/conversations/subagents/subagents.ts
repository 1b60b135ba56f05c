/**
 * The subagents of one conversation: starts them for `Task` calls, runs the agent loop for each, and ends them. What is
 * true of them is in the state; this class only has what lives in this process.
 */
import type { LoopEnd } from '../../agent/loop-end.ts'
import type { LoopWait } from '../../agent/loop.ts'
import type { Event } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import { Queue } from '../../lib/queue.ts'
import type { Place } from '../../lib/queue.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { TaskAccess, TaskInput, TaskOutcome } from '../../tools/task/task-access.ts'
import { LentPlaces } from '../runs/lent-places.ts'
import { endOfSubagent } from '../state/drafts.ts'
import type { Intent } from '../state/intents.ts'
import type { LiveState } from '../state/live-state.ts'
import type { Subagent } from '../state/state-shape.ts'
import { findSubagent, isBlocked, parentOf } from '../state/subagents.ts'
import { limitsOf, listAgents } from './definitions.ts'
import { outcomeOf, STAYS_OPEN } from './outcome.ts'
import { planSubagent } from './plan-subagent.ts'
import type { SubagentParts } from './subagent-run.ts'
import { SubagentRun } from './subagent-run.ts'
import type { Worker } from './decision-waits.ts'
import { DecisionWaits } from './decision-waits.ts'

/** What subagents need of the conversation's actor. */
export type SubagentActor = {
  /** Queues the work and runs it in turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: Intent): Promise<readonly Event[]>
}

export type SubagentsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly actor: () => SubagentActor
  /** Limits the runs of all conversations that work at the same time. */
  readonly slots: Queue
  readonly build: (subagent: Subagent, own: TaskAccess) => SubagentParts
  readonly onError: (error: unknown) => void
}

type Places = Pick<Queue, 'take'>

/** Where an agent's subagents work: until the signal is aborted, in these places. */
export type WorkOf = { readonly signal: AbortSignal; readonly slots: Places; readonly places?: Places }

type Call = {
  readonly run: SubagentRun
  readonly worker: Worker
  /** Aborted when the run is paused, or the call must end. */
  readonly signal: AbortSignal
  /** Aborted when the call must end. */
  readonly ending: AbortSignal
  readonly within: WorkOf
}

export class Subagents {
  readonly #deps: SubagentsDeps
  readonly #open = new Map<string, SubagentRun>()
  readonly #waiting = new DecisionWaits()
  /** Of the agents that call subagents, by the call that they work for themselves. */
  readonly #work = new Map<string | undefined, WorkOf>()
  readonly #places: Queue
  #listed: { readonly for: object; readonly text: string } | undefined

  constructor(deps: SubagentsDeps) {
    this.#deps = deps
    this.#places = new Queue({ limit: limitsOf(deps.state.current.settings).maxConcurrent })
  }

  /** A run of the main agent begins to work. */
  enter(work: WorkOf): void {
    this.#work.set(undefined, work)
  }

  /** For the tools of an agent: of the main agent, or of the subagent that works for this call. */
  accessOf(callerId?: string): TaskAccess {
    return { agents: () => this.#agents(), run: (input, context) => this.#call(callerId, input, context) }
  }

  /** Receives each durable event, after the state has been updated. */
  take(event: Event): void {
    for (const run of this.#open.values()) run.take(event)
    this.#waiting.check()
    const ended = event.type === 'Result' ? parentOf(event) : undefined
    if (ended !== undefined) this.#forget(ended)
  }

  /** The calls of subagents that have begun: their tool writes the result. */
  begunCalls(): readonly string[] {
    return [...this.#open.values()].flatMap((run) => run.begunCalls())
  }

  /** Ends the running calls of subagents; see `ToolCalls.interrupt`. */
  async interrupt(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ parts }) => parts.toolCalls.interrupt()))
  }

  #agents(): string {
    const { settings } = this.#deps.state.current
    if (this.#listed?.for !== settings) this.#listed = { for: settings, text: listAgents(settings) }
    return this.#listed.text
  }

  async #call(
    callerId: string | undefined,
    input: TaskInput,
    { toolUseId, signal: ending }: { readonly toolUseId: string; readonly signal: AbortSignal },
  ): Promise<TaskOutcome> {
    const within = this.#work.get(callerId)
    if (!within) return STAYS_OPEN
    const signal = AbortSignal.any([ending, within.signal])
    const { worker, leave } = this.#waiting.add({ toolUseId, callerId })
    try {
      const subagent = await this.#begin(callerId, toolUseId, input, signal)
      if ('fault' in subagent) return { output: subagent.fault, error: { type: 'failed', message: subagent.fault } }
      const call = { run: this.#runOf(subagent), worker, signal, ending, within }
      return await this.#follow(call)
    } catch (error) {
      if (!signal.aborted) throw error
      return ending.aborted ? INTERRUPTED_EARLY : STAYS_OPEN
    } finally {
      leave()
    }
  }

  /** Returns the subagent of the call, which may have begun in an earlier run. */
  async #begin(
    callerId: string | undefined,
    toolUseId: string,
    input: TaskInput,
    signal: AbortSignal,
  ): Promise<Subagent | { readonly fault: string }> {
    const { log, state } = this.#deps
    const known = findSubagent(state.current, toolUseId)
    if (known) return known
    const planned = await planSubagent(log, state.current, { toolUseId, callerId }, input)
    if ('fault' in planned) return planned
    await this.#apply({ kind: 'start_subagent', subagent: planned }, signal)
    const begun = findSubagent(state.current, toolUseId)
    if (!begun) throw new Error(`The call ${toolUseId} has its result already.`)
    return begun
  }

  #runOf(subagent: Subagent): SubagentRun {
    const { toolUseId } = subagent
    const known = this.#open.get(toolUseId)
    if (known) return known
    const run = new SubagentRun(subagent, this.#deps.build(subagent, this.accessOf(toolUseId)))
    this.#open.set(toolUseId, run)
    return run
  }

  /** Runs the loop until the subagent has ended, or must wait for another run. */
  async #follow(call: Call): Promise<TaskOutcome> {
    const { run, signal } = call
    try {
      for (;;) {
        const end = await this.#workOnce(call)
        if (signal.aborted || end === undefined) return await this.#leave(call)
        if ('asks' in end) await this.#ask(call, end)
        else if ('stopReason' in end) return outcomeOf(this.#deps.state.current, run.toolUseId, end)
      }
    } finally {
      run.rest()
    }
  }

  /** Undefined if it cannot continue in this run. */
  async #workOnce({ run, worker, signal, within }: Call): Promise<LoopEnd | LoopWait | undefined> {
    const { toolUseId } = run
    const isWaiting = () => this.#isBlocked(toolUseId)
    if (isWaiting() && !(await this.#waiting.until(worker, isWaiting, signal))) return undefined
    const places = (within.places ?? this.#places).take({ signal })
    const slot = (await places.given) ? within.slots.take({ signal }) : undefined
    try {
      if (!(await slot?.given)) return undefined
      const lent = { places: new LentPlaces(within.places ?? this.#places), slots: new LentPlaces(within.slots) }
      this.#work.set(toolUseId, { signal, ...lent })
      return await run.loop(signal)
    } finally {
      this.#work.delete(toolUseId)
      leave(slot, places)
    }
  }

  #isBlocked(toolUseId: string): boolean {
    const { current } = this.#deps.state
    const subagent = findSubagent(current, toolUseId)
    return subagent !== undefined && isBlocked(current, subagent)
  }

  async #ask({ run, signal }: Call, { asks, hooked }: Extract<LoopWait, { asks: unknown }>): Promise<void> {
    const { toolUseId, parts } = run
    const runId = parts.state.current.run?.id ?? ''
    const intent = { kind: 'ask', runId, requestId: uuid7(), toolUses: asks, hooked, subagentOf: toolUseId } as const
    await this.#apply(intent, signal)
    if (this.#isBlocked(toolUseId)) parts.hooks.notifyOf(asks)
  }

  /** Rejects with the signal's reason if it is aborted before it is decided; then nothing is stored. */
  async #apply(intent: Intent, signal: AbortSignal): Promise<void> {
    const actor = this.#deps.actor()
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const done = actor.inTurn(async () => {
      if (!signal.aborted) await actor.apply(intent)
    })
    done.catch(() => {}) // reported to the caller below, unless the signal is aborted first
    try {
      // The stop of a run may hold the turn, and wait for this.
      signal.throwIfAborted()
      await Promise.race([done, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      aborted.catch(() => {})
    }
  }

  /** The call stays open for the next run, unless it must end. */
  async #leave({ run, ending }: Call): Promise<TaskOutcome> {
    if (!ending.aborted) return STAYS_OPEN
    await run.parts.toolCalls.interrupt()
    const { current } = this.#deps.state
    const subagent = findSubagent(current, run.toolUseId)
    if (!subagent || run.begunCalls().length > 0) return STAYS_OPEN
    return { ...INTERRUPTED, events: endOfSubagent(current, subagent, 'cancelled', INTERRUPTED.error.message) }
  }

  #forget(toolUseId: string): void {
    const run = this.#open.get(toolUseId)
    this.#open.delete(toolUseId)
    run?.parts.close().catch(this.#deps.onError)
  }
}

function leave(...places: readonly (Place | undefined)[]): void {
  for (const place of places) place?.leave()
}

const interrupted = (message: string) => ({ output: message, error: { type: 'interrupted' as const, message } })

const INTERRUPTED = interrupted('The subagent was interrupted.')
const INTERRUPTED_EARLY = interrupted('The call was interrupted before the subagent began.')
