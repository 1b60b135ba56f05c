/**
 * The runs of subagents: starts them for `Task` calls, runs the agent loop for each, and ends them. What is true of them is
 * in the state; this class only has what lives in this process. `run-driver.ts` has the run of the main agent.
 *
 *     Task call ──▶ begun ──▶ waits for a slot ──▶ works ──▶ ended: its `Result` is stored with that of the call
 *                     │             ▲                │
 *                     │             │ answered       │ asks
 *                     ▼             │                ▼
 *                   in background   └──────────── blocked ──▶ left: nobody works any more, and the run waits, too
 *
 * In the background, the call has its result at once, and the state drives the subagent from `waits for a slot` on
 * (`background.ts`). A stop leaves it from each of these states: its call stays open for the next run, unless it must end.
 */
import type { LoopEnd, LoopWait } from '../../agent/loop-end.ts'
import type { Event } from '../../contract/events/event.ts'
import { NEVER } from '../../lib/bounded-wait.ts'
import type { Queue } from '../../lib/queue.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { Problem } from '../../contract/problem.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Feature } from '../agents/feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { TaskAccess, TaskInput } from '../../tools/task/task-access.ts'
import type { CallOutcome } from '../../tools/tool.ts'
import { STAYS_OPEN } from '../../tools/tool.ts'
import type { EndingRequests } from '../live/ending-requests.ts'
import type { Subagent } from '../../state/state-shape.ts'
import { findSubagent, isBlocked, parentOf } from '../../state/subagents.ts'
import { listAgents } from './definitions.ts'
import { applyEnqueued } from './apply-in-turn.ts'
import type { BeginDeps } from './begin-subagent.ts'
import { beginSubagent } from './begin-subagent.ts'
import { BackgroundSubagents } from './background.ts'
import { FAILED_INSIDE, faultOf, inBackground, interruptedIn, NOT_IN_BACKGROUND, outcomeOf } from './outcome.ts'
import { SubagentRun, type SubagentParts } from './subagent-run.ts'
import type { Worker } from './decision-waits.ts'
import { DecisionWaits } from './decision-waits.ts'
import type { WorkingSlot } from '../agents/working-slot.ts'
import { takeAgain } from '../agents/working-slot.ts'
import type { WorkOf } from './agent-slots.ts'
import { stopOne } from './stop-one.ts'
import { lendSlot, SubagentSlots } from './agent-slots.ts'

export type SubagentsDeps = BeginDeps & {
  readonly ending: Pick<EndingRequests, 'end'>
  /** Limits the runs of all conversations that work at the same time. */
  readonly slots: Queue
  /** See `ConversationDeps`. */
  readonly leaving: AbortSignal | undefined
  readonly build: (subagent: Subagent, own: TaskAccess) => SubagentParts
  /** Returns the agent that ends when a hook in a subagent ends the run. */
  readonly main: () => EndedAgent
  /** Called when one has a slot, before it works. */
  readonly onWork: () => void
  readonly onError: (error: unknown) => void
}

type EndedAgent = { readonly toolCalls: Pick<ToolCalls, 'interrupt'>; readonly hooks: Feature<ConversationHooks> }

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
  /** What the agents that call subagents work on, by the call that they work for themselves. */
  readonly #work = new Map<string | undefined, WorkOf>()
  readonly #limits: SubagentSlots
  readonly #background: BackgroundSubagents
  #isHalted = false
  #listed: { readonly for: object; readonly text: string } | undefined

  constructor(deps: SubagentsDeps) {
    this.#deps = deps
    this.#limits = new SubagentSlots(deps.state.current.settings, deps.slots)
    this.#background = new BackgroundSubagents({
      ...deps,
      slots: () => this.#limits.inBackground(),
      follow: (subagent, within) => this.#followInBackground(subagent, within),
      end: (toolUseId, outcome, signal) => this.#endInBackground(toolUseId, outcome, signal),
    })
  }

  /** True if subagents work in the background. */
  get areInBackground(): boolean {
    return this.#background.areAny
  }

  /** A run of the main agent begins to work; subagents may use its slot while it waits for them. */
  enter(own: WorkingSlot): void {
    this.#work.set(undefined, { signal: own.signal, own, slots: this.#limits.ofRun(), waiting: this.#waiting })
  }

  /** Undefined if the subagent does not work now. */
  slotOf(toolUseId: string): WorkingSlot | undefined {
    return this.#work.get(toolUseId)?.own
  }

  /** Starts those in the background that can work, after an attempt to pause or a restart. */
  readonly resume = (): void => this.#background.resume()

  /** Resolves when none works in the background; a running tool continues. */
  readonly stop = (): Promise<void> => this.#background.stop()

  /** See `stopOne` in `stop-one.ts`. */
  readonly stopOne = (agentId: string): Promise<void> =>
    stopOne({ ...this.#deps, background: this.#background, runs: () => [...this.#open.values()] }, agentId)

  /** Nothing begins any more, and what ends of a call is decided for all together when the conversation is closed. */
  halt(): void {
    this.#isHalted = true
    this.#background.halt()
  }

  /** Returns the access for the tools of an agent: of the main agent, or of the subagent that works for this call. */
  accessOf(callerId?: string): TaskAccess {
    return { agents: () => this.#agents(), run: (input, context) => this.#call(callerId, input, context) }
  }

  /** Receives each durable event, after the state has been updated. */
  take(event: Event): void {
    for (const run of this.#open.values()) run.take(event)
    this.#waiting.check()
    if (event.type === 'ConfigUpdate') this.#limits.update(this.#deps.state.current.settings)
    const endedCallId = event.type === 'Result' ? parentOf(event) : undefined
    if (endedCallId !== undefined) this.#forget(endedCallId)
    this.#background.take(event)
  }

  /** The calls of subagents that have begun: their tool writes the result. */
  begunCalls(): readonly string[] {
    return [...this.#open.values()].flatMap((run) => run.begunCalls())
  }

  /** Ends the running calls of subagents; see `ToolCalls.interrupt`. */
  async interrupt(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ parts }) => parts.toolCalls.interrupt()))
  }

  /** See `ToolCalls.storeResults`. */
  async storeResults(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ parts }) => parts.toolCalls.storeResults()))
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
  ): Promise<CallOutcome> {
    const within = this.#work.get(callerId)
    if (!within) return STAYS_OPEN
    const signal = AbortSignal.any([ending, within.signal])
    if (input.run_in_background && callerId !== undefined) return NOT_IN_BACKGROUND
    const { worker, leave } = within.waiting.add({ toolUseId, callerId })
    try {
      const subagent = await beginSubagent(this.#deps, { toolUseId, callerId }, input, signal)
      if ('fault' in subagent) return faultOf(subagent.fault)
      if (subagent.isBackground) return inBackground(subagent)
      const call = { run: this.#runOf(subagent), worker, signal, ending, within }
      return await this.#follow(call)
    } catch (error) {
      if (!signal.aborted) throw error
      return await this.#leave(toolUseId, ending)
    } finally {
      leave()
    }
  }

  #runOf(subagent: Subagent): SubagentRun {
    const { toolUseId } = subagent
    const knownRun = this.#open.get(toolUseId)
    if (knownRun) return knownRun
    const run = new SubagentRun(subagent, this.#deps.build(subagent, this.accessOf(toolUseId)))
    this.#open.set(toolUseId, run)
    return run
  }

  /** Runs the loop until the subagent has ended, or must wait for another run. */
  async #follow(call: Call): Promise<CallOutcome> {
    const { run, signal } = call
    try {
      for (;;) {
        const end = await this.#workOnce(call)
        if (signal.aborted || end === undefined) return await this.#leave(run.toolUseId, call.ending)
        if ('permissionCalls' in end) await this.#requestPermission(call, end)
        else if ('stopReason' in end) return this.#end(run, end)
      }
    } finally {
      run.rest()
    }
  }

  /** A hook that ends the run in a subagent ends all agents of the run. */
  #end({ toolUseId, callerId }: SubagentRun, end: LoopEnd): CallOutcome {
    const { state, main, onError } = this.#deps
    const isInBackground = findSubagent(state.current, toolUseId)?.isBackground ?? false
    const caller = callerId === undefined ? main() : this.#open.get(callerId)?.parts
    if (end.stopReason === 'hook' && !isInBackground && caller) {
      caller.hooks.current?.tools.endRun()
      caller.toolCalls.interrupt().catch(onError)
    }
    return outcomeOf(state.current, toolUseId, end)
  }

  async #followInBackground(subagent: Subagent, within: WorkOf): Promise<CallOutcome> {
    const { toolUseId, callerId } = subagent
    const { worker, leave: leaveWork } = within.waiting.add({ toolUseId, callerId })
    try {
      const run = this.#runOf(subagent)
      return await this.#follow({ run, worker, signal: within.signal, ending: NEVER, within })
    } catch (error) {
      if (within.signal.aborted || error instanceof Problem) throw error
      this.#deps.onError(error)
      return outcomeOf(this.#deps.state.current, toolUseId, FAILED_INSIDE)
    } finally {
      leaveWork()
    }
  }

  async #endInBackground(toolUseId: string, { events = [] }: CallOutcome, signal: AbortSignal): Promise<void> {
    await applyEnqueued(this.#deps.actor(), { kind: 'end_background', toolUseId, events, newRunId: uuid7() }, signal)
  }

  /** Undefined if it cannot continue in this run. */
  async #workOnce({ run, worker, signal, within }: Call): Promise<LoopEnd | LoopWait | undefined> {
    const { toolUseId } = run
    const isWaiting = () => this.#isBlocked(toolUseId)
    if (isWaiting() && !(await within.waiting.until(worker, isWaiting, signal))) return undefined
    const { slots, waiting, own: above } = within
    if (above) await takeAgain(above)
    const own: WorkingSlot = { slots, signal, calls: run.parts.toolCalls, above, request: slots.take({ signal }) }
    try {
      if (!(await own.request.entry)) return undefined
      // It may have been rejected while it waited.
      if (!findSubagent(this.#deps.state.current, toolUseId)) return undefined
      this.#work.set(toolUseId, { signal, own, slots: lendSlot(slots), waiting })
      this.#deps.onWork()
      return await run.loop(signal)
    } finally {
      this.#work.delete(toolUseId)
      own.isOver = true
      own.request.leave()
    }
  }

  #isBlocked(toolUseId: string): boolean {
    const { current } = this.#deps.state
    const subagent = findSubagent(current, toolUseId)
    return subagent !== undefined && isBlocked(current, subagent)
  }

  async #requestPermission(
    { run, signal }: Call,
    { permissionCalls, hooked }: Extract<LoopWait, { permissionCalls: unknown }>,
  ): Promise<void> {
    const { toolUseId, parts } = run
    const runId = parts.state.current.run?.id ?? ''
    const intent = {
      kind: 'request_permission',
      runId,
      requestId: uuid7(),
      toolUses: permissionCalls,
      hooked,
      subagentOf: toolUseId,
    } as const
    await applyEnqueued(this.#deps.actor(), intent, signal)
    if (this.#isBlocked(toolUseId)) parts.hooks.current?.notifyOf(permissionCalls)
  }

  /** The call stays open for the next run, unless it must end: then its subagent ends, too. */
  async #leave(toolUseId: string, signal: AbortSignal): Promise<CallOutcome> {
    if (!signal.aborted || this.#isHalted) return STAYS_OPEN
    const run = this.#open.get(toolUseId)
    await run?.parts.toolCalls.interrupt()
    if (run && run.begunCalls().length > 0) return STAYS_OPEN
    return await this.#deps.ending.end(() => interruptedIn(this.#deps.state.current, toolUseId))
  }

  #forget(toolUseId: string): void {
    const run = this.#open.get(toolUseId)
    this.#open.delete(toolUseId)
    run?.parts.close().catch(this.#deps.onError)
  }
}
