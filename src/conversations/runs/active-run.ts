/** An active run: drives the agent loop outside the conversation's inbox, and enters the inbox only to end. */
import { Compactor } from '../../agent/compaction/compactor.ts'
import type { LoopEnd } from '../../agent/loop-end.ts'
import { timeLimit } from '../../agent/loop-ends.ts'
import type { AgentContext, LoopWait } from '../../agent/loop.ts'
import { runAgent } from '../../agent/loop.ts'
import type { OutputContext } from '../../agent/output/final-output.ts'
import type { History } from '../../agent/history.ts'
import { stuckIn } from '../../agent/repeats.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Event } from '../../contract/events/event.ts'
import type { LlmConfig } from '../../contract/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { Llm } from '../../llm/llm.ts'
import type { GateRules } from '../../policy/gated-call.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { LiveState } from '../state/live-state.ts'
import { tokensIn } from '../state/run-state.ts'
import { gatedCalls, rulesOf } from '../state/state.ts'
import type { Place, Queue } from '../../lib/queue.ts'
import { dequeued, queued } from '../state/drafts.ts'
import { compactionOf } from './compaction-of.ts'
import { readHistory } from './read-history.ts'

/** `requestedAt` is the log's head at the last model request, or 0 if there was none. */
export type RunEnd = (LoopEnd | LoopWait) & { readonly requestedAt: number }

export type ActiveRunDeps = {
  readonly id: string
  readonly log: EventLog
  readonly slots: Queue
  readonly toolCalls: ToolCalls
  readonly gate: PermissionGate
  readonly hooks: ConversationHooks
  readonly createLlm: (config: LlmConfig) => Llm
  /** Models of this conversation that turned out not to support tools. */
  readonly withoutTools: Set<string>
  readonly state: LiveState
  /** Stores the end, and returns true if the run continues after all. Not called for a run that was stopped. */
  readonly onEnd: (run: ActiveRun, end: RunEnd) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** The longest timer, in milliseconds: about 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

const TIME_LIMIT = Symbol('time limit')

export class ActiveRun {
  readonly id: string
  readonly #deps: ActiveRunDeps
  readonly #abort = new AbortController()
  /**
   * From `performance.now()`, because the wall clock may jump. Shifted back by the time the run had worked before it
   * waited.
   */
  #startedAt = 0
  /** Kept only for the run: an idle conversation holds no messages in memory. */
  #history: Pick<History, 'add'> | undefined
  #context: Promise<AgentContext> | undefined
  #deadline: NodeJS.Timeout | undefined
  #looping: Promise<unknown> = Promise.resolve()
  #requestedAt = 0

  constructor(deps: ActiveRunDeps) {
    this.id = deps.id
    this.#deps = deps
  }

  start(): void {
    this.#drive().catch(this.#deps.onError)
  }

  /** The log's head at the last model request, or 0 if there was none. */
  get requestedAt(): number {
    return this.#requestedAt
  }

  /** Starts no further call or model request. `stop` must follow. */
  abort(): void {
    this.#abort.abort()
  }

  /**
   * Resolves when the loop has stopped, and does not wait for the stored end: that would wait for the inbox, whose turn
   * the caller holds.
   */
  async stop(): Promise<void> {
    this.abort()
    await this.#looping
  }

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#history?.add(event)
    if (event.type === 'ConfigUpdate') this.#watchDeadline()
  }

  async #drive(): Promise<void> {
    const { signal } = this.#abort
    const place = this.#deps.slots.take({ signal })
    try {
      const waiting = this.#waitFor(place)
      this.#looping = waiting
      let failed = await waiting
      this.#startedAt = performance.now() - (this.#deps.state.current.run?.activeMs ?? 0)
      this.#watchDeadline()
      for (;;) {
        const looping = failed ? Promise.resolve(failed) : this.#loopOnce()
        failed = undefined
        this.#looping = looping
        const end = await looping
        if (signal.aborted && signal.reason !== TIME_LIMIT) return // the caller that stopped the run stores its end
        if (await this.#deps.onEnd(this, { ...end, requestedAt: this.#requestedAt })) continue
        if ('asks' in end) this.#deps.hooks.notifyOf(end.asks)
        return
      }
    } finally {
      clearTimeout(this.#deadline)
      // It may still be referenced, and receives nothing any more.
      this.#startedAt = 0
      this.#history = undefined
      this.#context = undefined
      place.leave()
    }
  }

  /**
   * While the limit of concurrent runs is reached, the log shows that this run waits. Never throws: a failed append
   * ends the run.
   */
  async #waitFor(place: Place): Promise<LoopEnd | undefined> {
    if (place.isFree) return undefined
    const { log, state } = this.#deps
    try {
      await log.append([queued(state.current)])
      if (await place.given) await log.append([dequeued(state.current)])
      return undefined
    } catch (error) {
      return this.#failure(error)
    }
  }

  /** Never throws: an error ends the run as `error`. */
  async #loopOnce(): Promise<LoopEnd | LoopWait> {
    const { signal } = this.#abort
    const { log } = this.#deps
    try {
      const context = await (this.#context ??= this.#createContext())
      const emit = async (drafts: Parameters<EventLog['append']>[0]) => void (await log.append(drafts))
      const end = await runAgent(context, { emit, publish: (draft) => log.publish(draft) }, signal)
      return signal.reason === TIME_LIMIT ? timeLimit() : end
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) return this.#failure(error)
      return error === TIME_LIMIT ? timeLimit() : { stopReason: 'paused' }
    }
  }

  #failure(error: unknown): LoopEnd {
    this.#deps.onError(error)
    const message =
      error instanceof Problem ? error.message : 'The server failed inside the run; its log has the details.'
    return { stopReason: 'error', failure: { type: 'internal', message, retryable: true } }
  }

  async #createContext(): Promise<AgentContext> {
    const { id, toolCalls, gate, hooks, createLlm, withoutTools, state } = this.#deps
    if (toolCalls.prepare) await toolCalls.prepare(this.#abort.signal)
    const history = await this.#loadHistory()
    let llm: { readonly for: LlmConfig; readonly instance: Llm } | undefined
    return {
      runId: id,
      history,
      toolCalls,
      compactor: this.#createCompactor(history),
      withoutTools,
      // Create it again after a change of the configuration, so that the change applies from the next step.
      llm: () => {
        const config = state.current.settings.llm_config
        if (llm?.for !== config) llm = { for: config, instance: createLlm(config) }
        return llm.instance
      },
      hooks: () => hooks.forLoop(),
      openCalls: () => state.current.openCalls,
      prepareGate: () => gate.prepare(this.#rules()),
      gate: () => {
        const notBegun = gatedCalls(state.current).filter((call) => !toolCalls.hasBegun(call.toolUseId))
        return gate.decide(notBegun, this.#rules())
      },
      steps: () => state.current.run?.steps ?? 0,
      stuckIn: () => stuckIn(state.current.repeats),
      limits: () => ({
        maxSteps: state.current.run?.maxSteps,
        maxIterations: state.current.settings.max_iteration_per_run,
        maxTokens: state.current.settings.max_tokens_per_run,
        maxBudgetUsd: state.current.settings.max_budget_usd,
      }),
      output: outputOf(state, id),
      spent: () => ({ tokens: tokensIn(state.current.run?.usage), costUsd: state.current.costUsd }),
      onRequest: () => (this.#requestedAt = state.current.lastSeq),
    }
  }

  #rules(): GateRules {
    const { state, hooks } = this.#deps
    const rules = rulesOf(state.current)
    return hooks.areApprovers() ? { ...rules, hasApprover: true } : rules
  }

  #createCompactor(history: History): Compactor {
    const { id, log, toolCalls, createLlm, withoutTools, state, hooks } = this.#deps
    return new Compactor({
      ...compactionOf(state, toolCalls, hooks),
      runId: id,
      history,
      tools: () => (withoutTools.has(state.current.settings.llm_config.model ?? '') ? [] : toolCalls.descriptions),
      createLlm,
      emit: async (drafts) => void (await log.append([...drafts])),
    })
  }

  /** Throws the signal's reason when it is aborted. */
  async #loadHistory(): Promise<History> {
    const { signal } = this.#abort
    const { log, toolCalls } = this.#deps
    // Events appended during the read follow it.
    const meanwhile: Event[] = []
    this.#history = { add: (event) => meanwhile.push(event) }
    const { head } = log
    const history = await readHistory(log, (name, output) => toolCalls.render(name, output), head, signal)
    // The head may have been one step ahead of the subscribers.
    for (const event of meanwhile) if (event.seq > head) history.add(event)
    this.#history = history
    return history
  }

  /** Rearms after each change of the limit, and if the deadline was beyond the longest timer. */
  #watchDeadline(): void {
    clearTimeout(this.#deadline)
    // The time limit does not count while the run is queued.
    if (this.#startedAt === 0) return
    const seconds = this.#deps.state.current.settings.max_seconds_per_run
    if (seconds === undefined) return
    const left = this.#startedAt + seconds * 1000 - performance.now()
    const next = left > MAX_TIMER_MS ? () => this.#watchDeadline() : () => this.#endForTime()
    this.#deadline = setTimeout(next, Math.min(left, MAX_TIMER_MS))
  }

  #endForTime(): void {
    this.#abort.abort(TIME_LIMIT)
    this.#deps.toolCalls.interrupt().catch(this.#deps.onError)
  }
}

function outputOf(state: LiveState, runId: string): OutputContext | undefined {
  const schema = state.current.run?.outputSchema ?? state.current.settings.output_schema
  return schema && { runId, schema, requests: () => state.current.run?.outputRequests ?? 0 }
}
