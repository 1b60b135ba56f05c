/** An active run: drives the agent loop outside the conversation's inbox, and enters the inbox only to end. */
import type { LoopEnd } from '../../agent/loop-end.ts'
import { timeLimit } from '../../agent/model/loop-ends.ts'
import type { AgentContext } from '../../agent/loop-context.ts'
import type { LoopWait } from '../../agent/loop.ts'
import { runAgent } from '../../agent/loop.ts'
import type { OutputContext } from '../../agent/output/final-output.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import { Interrupt } from '../../llm/llm.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { Feature } from '../agents/feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { LiveState } from '../live-state.ts'
import { tokensIn } from '../../state/run-state.ts'
import { rulesOf } from '../../state/state.ts'
import { waitsForClient } from '../../state/client-result.ts'
import { waitsForSubagents } from '../../state/subagents.ts'
import type { UsedSubagents } from '../used-subagents.ts'
import type { Queue, SlotRequest } from '../../lib/queue.ts'
import { dequeued, queued } from '../../state/drafts.ts'
import type { AgentParts } from '../agents/agent-context.ts'
import { createAgentContext } from '../agents/agent-context.ts'
import type { LiveHistory } from '../agents/live-history.ts'
import { inRun } from '../agents/with-model.ts'
import { overridesOf } from '../../state/run-overrides.ts'
import { MAX_TIMER_MS, timerMs } from '../../lib/bounded-wait.ts'

/** `requestedAt` is the log's head at the last model request, or 0 if there was none. */
export type RunEnd = (LoopEnd | LoopWait) & { readonly requestedAt: number }

export type ActiveRunDeps = Pick<AgentParts, 'gate' | 'createLlm' | 'catalog' | 'withoutTools'> & {
  readonly id: string
  readonly history: LiveHistory
  readonly log: EventLog
  readonly slots: Queue
  readonly toolCalls: ToolCalls
  readonly hooks: Feature<ConversationHooks>
  readonly state: LiveState
  readonly subagents: UsedSubagents
  /** Stores the end, and returns true if the run continues after all. Not called for a run that was stopped. */
  readonly onEnd: (run: ActiveRun, end: RunEnd) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

const TIME_LIMIT = new Interrupt('the time limit')

export class ActiveRun {
  readonly id: string
  readonly #deps: ActiveRunDeps
  readonly #abort = new AbortController()
  /**
   * From `performance.now()`, because the wall clock may jump. Shifted back by the time the run had worked before it
   * waited.
   */
  #startedAt = 0
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

  /** Starts no further call or model request. `stop` must follow. An `Interrupt` stores the text so far. */
  abort(reason?: Interrupt): void {
    this.#abort.abort(reason)
  }

  /**
   * Resolves when the loop has stopped, and does not wait for the stored end: that would wait for the inbox, whose turn
   * the caller holds.
   */
  async stop(reason?: Interrupt): Promise<void> {
    this.abort(reason)
    await this.#looping
  }

  async #drive(): Promise<void> {
    const { signal } = this.#abort
    const slot = this.#deps.slots.take({ signal })
    try {
      const waiting = this.#waitFor(slot)
      this.#looping = waiting
      let failed = await waiting
      this.#deps.subagents.enter(signal)
      this.#startedAt = performance.now() - (this.#deps.state.current.run?.activeMs ?? 0)
      this.watchDeadline()
      for (;;) {
        const looping = failed ? Promise.resolve(failed) : this.#loopOnce()
        failed = undefined
        this.#looping = looping
        const end = await looping
        if (signal.aborted && signal.reason !== TIME_LIMIT) return // the caller that stopped the run stores its end
        if (await this.#deps.onEnd(this, { ...end, requestedAt: this.#requestedAt })) continue
        if ('asks' in end) this.#deps.hooks.current?.notifyOf(end.asks)
        return
      }
    } finally {
      clearTimeout(this.#deadline)
      // It may still be referenced.
      this.#startedAt = 0
      this.#context = undefined
      slot.leave()
    }
  }

  /**
   * While the limit of concurrent runs is reached, the log shows that this run waits. Never throws: a failed append
   * ends the run.
   */
  async #waitFor(slot: SlotRequest): Promise<LoopEnd | undefined> {
    if (slot.isFree) return undefined
    const { log, state } = this.#deps
    try {
      await log.append([queued(state.current)])
      if (await slot.given) await log.append([dequeued(state.current)])
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
    const { id, history: live, log, toolCalls, state } = this.#deps
    if (toolCalls.prepare) await toolCalls.prepare(this.#abort.signal)
    const render = (name: string, output: unknown) => toolCalls.render(name, output)
    const history = await live.load(log, render, this.#abort.signal, { forgotten: state.current.forgotten })
    const parts: AgentParts = {
      ...this.#deps,
      state: overridesOf(state.current)?.model === undefined ? state : inRunOf(state),
      emit: async (drafts) => void (await log.append(drafts)),
      rules: () => [rulesOf(state.current)],
      spent: () => {
        const { run, costUsd } = state.current
        return { tokens: tokensIn(run?.usage), costUsd, unpriced: run?.unpriced }
      },
      waitsOutside: () => waitsForClient(state.current) || waitsForSubagents(state.current),
    }
    const onRequest = () => (this.#requestedAt = state.current.lastSeq)
    return createAgentContext(parts, { runId: id, history, onRequest, output: outputOf(state, id) })
  }

  /** Rearms after each change of the limit, and if the deadline was beyond the longest timer. */
  watchDeadline(): void {
    clearTimeout(this.#deadline)
    // The time limit does not count while the run is queued.
    if (this.#startedAt === 0) return
    const seconds = this.#deps.state.current.settings.max_seconds_per_run
    if (seconds === undefined) return
    const left = this.#startedAt + seconds * 1000 - performance.now()
    const next = left > MAX_TIMER_MS ? () => this.watchDeadline() : () => this.#endForTime()
    this.#deadline = setTimeout(next, timerMs(left))
  }

  #endForTime(): void {
    this.#abort.abort(TIME_LIMIT)
    this.#deps.toolCalls.interrupt().catch(this.#deps.onError)
  }
}

/** The state with what the run has instead of the settings of the conversation. */
const inRunOf = (state: LiveState): AgentParts['state'] => ({
  get current() {
    return inRun(state.current)
  },
})

function outputOf(state: LiveState, runId: string): OutputContext | undefined {
  const schema = state.current.run?.outputSchema ?? state.current.settings.output_schema
  return schema && { runId, schema, requests: () => state.current.run?.outputRequests ?? 0 }
}
