/** Compactions that clients ask for, while the agent is not running; one at a time. */
import { CompactionBlocked, Compactor } from '../../agent/compaction/compactor.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { CompactRequest } from '../../contract/compaction/request.ts'
import type { EventOf } from '../../contract/events/event.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import { NO_REASON } from '../../hooks/hook-answer.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { Llm } from '../../llm/llm.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import type { Feature } from '../agents/feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import { refuseNewer } from '../../state/refusals.ts'
import type { LiveState } from '../live/live-state.ts'
import { compactionOf } from '../agents/agent-context.ts'
import { readHistory } from '../agents/read-history.ts'
import type { Inbox } from '../live/inbox.ts'

export type CompactionsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly actor: Pick<Inbox, 'enqueue'>
  readonly toolCalls: ToolCalls
  readonly createLlm: (config: LlmConfig) => Llm
  readonly catalog: ModelCatalog
  readonly hooks: Feature<ConversationHooks>
  readonly redact: (text: string) => string
}

export class Compactions {
  readonly #deps: CompactionsDeps
  #active: { readonly abort: AbortController; readonly done: Promise<unknown> } | undefined

  constructor(deps: CompactionsDeps) {
    this.#deps = deps
  }

  get isIdle(): boolean {
    return this.#active === undefined
  }

  /**
   * Returns the stored event. A run may begin meanwhile: what it adds is newer than everything that is forgotten. Throws
   * a `Problem` if the agent runs, if there is nothing to compact, and if the model fails.
   */
  async compact({ instructions }: CompactRequest): Promise<EventOf<'Condensation'>> {
    const { actor, redact } = this.#deps
    const wish = instructions === undefined ? undefined : redact(instructions)
    const { done } = await actor.enqueue(async () => this.#begin(wish))
    return await done
  }

  /** Ends the model request. Nothing is stored after this resolves. */
  async close(problem: Problem): Promise<void> {
    this.#active?.abort.abort(problem)
    await Promise.allSettled([this.#active?.done])
  }

  /** The promise is wrapped, so that the turn does not wait for it. */
  #begin(instructions: string | undefined): { readonly done: Promise<EventOf<'Condensation'>> } {
    const state = this.#deps.state.current
    const newer = refuseNewer(state)
    if (newer) throw newer
    if (state.status === 'running' || this.#active) throw isBusy()
    const abort = new AbortController()
    const compacting = this.#compact(instructions, abort.signal).finally(() => (this.#active = undefined))
    this.#active = { abort, done: compacting }
    return { done: compacting }
  }

  async #compact(instructions: string | undefined, signal: AbortSignal): Promise<EventOf<'Condensation'>> {
    const { log, state, toolCalls, createLlm, catalog, hooks } = this.#deps
    let storedCondensation: EventOf<'Condensation'> | undefined
    try {
      const render = (name: string, output: unknown) => toolCalls.render(name, output)
      const { forgotten, rewound } = state.current
      const compactor = new Compactor({
        ...compactionOf(state, toolCalls, hooks),
        history: await readHistory(log, render, log.head, signal, { forgotten, rewound }),
        tools: () => toolCalls.descriptions,
        createLlm,
        catalog,
        emit: async (drafts) => {
          const events = (await log.append([...drafts])).map(({ event }) => event)
          storedCondensation = events.find((event) => event.type === 'Condensation')
        },
      })
      await compactor.compact('request', signal, instructions)
    } catch (error) {
      if (error instanceof CompactionBlocked) throw isBlocked(error)
      throw error instanceof LlmError ? modelFailed(error) : error
    }
    if (!storedCondensation) throw nothingToCompact()
    return storedCondensation
  }
}

const isBusy = () =>
  new Problem('conversation_running', 'The agent is running, or is being compacted; pause it first, or wait.')

const isBlocked = ({ message }: CompactionBlocked) =>
  new Problem('blocked_by_hook', `A hook blocked the compaction: ${message || NO_REASON}`)

const nothingToCompact = () =>
  new Problem('nothing_to_compact', 'The conversation is too short to be compacted; continue it.')

function modelFailed(error: LlmError): Problem {
  return new Problem('model_failed', `The summary could not be written. ${error.message}`, {
    details: { error_type: error.type, retryable: error.retryable },
    cause: error,
  })
}
